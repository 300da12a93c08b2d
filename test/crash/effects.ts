/**
 * The visible side of the actions: a file that every run of an action writes a line to when it begins and one when it
 * ends. It is no part of the store, so it tells independently of the journal what was really done. A line that was
 * written outlives the process, and that is all that is lost here: it need not be synced.
 */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";

export interface Effect {
  readonly callId: string;
  readonly attempt: number;
  readonly phase: "begin" | "end";
}

export interface EffectLog {
  add(effect: Effect): void;
  close(): void;
}

export function openEffectLog(path: string): EffectLog {
  const file = openSync(path, "a");
  return {
    add: ({ callId, attempt, phase }) => {
      writeSync(file, `${callId} ${attempt} ${phase}\n`);
    },
    close: () => closeSync(file),
  };
}

export function readEffects(path: string): Effect[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [callId = "", attempt = "", phase = ""] = line.split(" ");
      if (phase !== "begin" && phase !== "end") throw new Error(`this is no effect: ${line}`);
      return { callId, attempt: Number(attempt), phase };
    });
}

/**
 * The visible side of the actions: a file that every run of an action writes a line to when it begins and one when it
 * ends. It is no part of the store, so it tells independently of the journal what was really done. A line that was
 * written outlives the process, and that is all that is lost here: it need not be synced. A kill may cut the line that
 * is being written (the kernel copies page by page), so every life begins a line of its own, and half a line says
 * nothing: the process died before the action could begin, or before it could say that it had ended.
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
  writeSync(file, "\n");
  return {
    add: ({ callId, attempt, phase }) => {
      writeSync(file, `${callId} ${attempt} ${phase}\n`);
    },
    close: () => closeSync(file),
  };
}

export function readEffects(path: string): Effect[] {
  if (!existsSync(path)) return [];
  return [...readFileSync(path, "utf8").matchAll(/^(\S+) (\d+) (begin|end)$/gm)].map(
    ([, callId = "", attempt, phase]) => ({
      callId,
      attempt: Number(attempt),
      phase: phase === "begin" ? "begin" : "end",
    }),
  );
}

/**
 * The side effects of actions: a file to which every run of an action writes a line when it starts and when it ends. It
 * is not part of the store, so it shows independently of the journal what really ran. Written lines survive the process,
 * and only processes die here, so the file is not synced. A kill may cut the current line (the kernel copies page by
 * page), so every process starts a new line, and half a line is ignored: the process died before the action started, or
 * before it recorded its end.
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

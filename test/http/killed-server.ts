/** A server in its own process that a test can kill, and repeatable chance for when. */
import { type ChildProcess, spawn } from "node:child_process";
import type { CompiledChild } from "../crash/compile.js";

export class Life {
  readonly url: Promise<string>;
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(child: CompiledChild, data: string) {
    const process_ = spawn(process.execPath, [child.script, data], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = process_;
    this.#ended = new Promise((resolve) => process_.once("close", () => resolve()));
    this.url = new Promise((resolve, reject) => {
      let said = "";
      let complained = "";
      process_.stdout.on("data", (text: Buffer) => {
        said += text.toString();
        if (said.includes("\n")) resolve(said.trim());
      });
      process_.stderr.on("data", (text: Buffer) => {
        complained += text.toString();
      });
      process_.once("close", () => reject(new Error(`the server ended before it listened: ${complained}`)));
    });
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }
}

/** Repeatable random numbers (mulberry32). */
export function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One run of the child process. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Durability } from "../../src/store/index.js";
import { type Acknowledgement, heard } from "./acknowledgements.js";

export type Mode = "live" | "steady" | "finish" | "hold" | "poison";

export interface ChildOptions {
  readonly script: string;
  readonly data: string;
  readonly effects: string;
  readonly seed: number;
  readonly mode: Mode;
  readonly durability: Durability;
  /** Recoveries without progress after which a message is abandoned (decision B12). */
  readonly recoveries: number;
  /** In addition to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

export class Life {
  /** All acknowledgments before it ended. Complete once `ended` has resolved. */
  readonly said: Acknowledgement[] = [];
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #process: ChildProcess;
  #stderr = "";
  #listeners: (() => void)[] = [];

  /** Loads the program; nothing is opened before `begin`. */
  constructor({ script, data, effects, seed, mode, durability, recoveries, env }: ChildOptions) {
    const words = [script, data, effects, `${seed}`, mode, durability, `${recoveries}`];
    this.#process = spawn(process.execPath, words, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    this.#readLines();
    this.#process.stderr?.on("data", (text: Buffer) => {
      this.#stderr += text.toString();
    });
    // Ignore the error of a child that was killed before it read.
    this.#process.stdin?.on("error", () => {});
    this.ended = new Promise((resolve, reject) => {
      this.#process.on("error", reject);
      this.#process.on("close", (code, signal) => {
        this.#wake();
        resolve({ code, signal });
      });
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get stderr(): string {
    return this.#stderr;
  }

  begin(): void {
    this.#process.stdin?.write("g");
  }

  /** A steady child finishes its work and exits. */
  finish(): void {
    this.#process.stdin?.end();
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  /** Resolves after this number of acknowledgments, or when it has exited. */
  hasSaid(count: number): Promise<void> {
    return this.#until(() => this.said.length >= count);
  }

  /** Resolves after this number of acknowledgments of a kind, or when it has exited. */
  hasSaidOf(kind: Acknowledgement["ack"], count: number): Promise<void> {
    return this.#until(() => this.said.filter(({ ack }) => ack === kind).length >= count);
  }

  /** Resolves when every recovered turn has made progress, or when it has exited. */
  hasCaughtUp(): Promise<void> {
    return this.#until(() => this.caughtUp);
  }

  get caughtUp(): boolean {
    return this.said.some(({ ack }) => ack === "caught up");
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition() && this.#process.exitCode === null && this.#process.signalCode === null) {
      await new Promise<void>((resolve) => this.#listeners.push(resolve));
    }
  }

  #readLines(): void {
    let rest = "";
    this.#process.stdout?.on("data", (text: Buffer) => {
      const lines = (rest + text.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const acknowledgement = heard(line);
        if (acknowledgement === undefined) throw new Error(`unknown line from the child: ${line}`);
        this.said.push(acknowledgement);
      }
      this.#wake();
    });
  }

  #wake(): void {
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

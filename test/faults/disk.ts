/** A disk that fails on demand under a real process: see shim.c. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The faults that the shim can cause. */
export const FAULTS = {
  full: "f",
  "full in the middle": "s",
  "write error": "e",
  "sync error": "y",
} as const;
export type Fault = keyof typeof FAULTS;

/** Why the shim is not available here. Undefined if it is. */
export function whatIsMissing(): string | undefined {
  if (process.platform !== "linux") return "LD_PRELOAD as it is used here exists on Linux only";
  const probe = spawnSync("cc", ["--version"], { encoding: "utf8" });
  if (probe.error !== undefined || probe.status !== 0) return "there is no C compiler";
  return undefined;
}

/** @returns the compiled shim */
export function compileShim(folder: string): string {
  const source = fileURLToPath(new URL("./shim.c", import.meta.url));
  const library = join(folder, "shim.so");
  const { status, stderr } = spawnSync("cc", ["-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the shim does not compile:\n${stderr}`);
  return library;
}

export class FailingDisk {
  /** Environment of the process that uses this disk. */
  readonly env: Readonly<Record<string, string>>;
  readonly #control: number;

  constructor(shim: string, folder: string) {
    const path = join(folder, "fault");
    writeFileSync(path, Buffer.from("-\0\0\0\0\0\0\0", "latin1"));
    this.#control = openSync(path, "r+");
    this.env = { LD_PRELOAD: shim, DISK_FAULT: path };
  }

  fail(fault: Fault): void {
    writeSync(this.#control, FAULTS[fault], 0);
  }

  mend(): void {
    writeSync(this.#control, "-", 0);
  }

  /** Calls that have failed so far. */
  get failures(): number {
    const bytes = Buffer.alloc(4);
    readSync(this.#control, bytes, 0, 4, 4);
    return bytes.readUInt32LE(0);
  }

  close(): void {
    closeSync(this.#control);
  }
}

/**
 * Alternating measurements, each in a fresh process and directory: the speed of a shared machine changes from minute
 * to minute.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { MeasureRequest } from "./measure.js";
import type { Figures } from "./workloads.js";

/** @throws Error when the measurement fails. */
export async function measured(
  request: Omit<MeasureRequest, "directory">,
  profile?: string,
): Promise<Figures> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const flags = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  const script = fileURLToPath(new URL("./measure.js", import.meta.url));
  const words = [...flags, "--expose-gc", script, JSON.stringify({ ...request, directory })];
  try {
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    if (code !== 0) throw new Error(`${request.workload} of ${request.folder} ended with ${code}`);
    return JSON.parse(output);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export interface Contender<T> {
  readonly name: string;
  measure(): Promise<T>;
}

/**
 * Runs each contender once per round, starting with a different one each time. Results by name, in order of the
 * rounds.
 */
export async function inTurns<T>(
  what: string,
  rounds: number,
  contenders: readonly Contender<T>[],
): Promise<ReadonlyMap<string, readonly T[]>> {
  const results = new Map<string, T[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (let place = 0; place < contenders.length; place++) {
      const contender = contenders[(place + round) % contenders.length];
      if (contender === undefined) continue;
      progress(`${what}: round ${round + 1} of ${rounds}, ${contender.name}`);
      results.get(contender.name)?.push(await contender.measure());
    }
  }
  return results;
}

/** Progress messages; the figures go to stdout. */
export function progress(words: string): void {
  process.stderr.write(`… ${words}\n`);
}

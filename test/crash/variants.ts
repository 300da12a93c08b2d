/** The data directories of the crash test, which run concurrently with different settings, and their verification. */
import { mkdirSync } from "node:fs";
import { openStore } from "../../src/store/index.js";
import { readEffects } from "./effects.js";
import { type RunOptions, runAndKill } from "./run.js";
import { type Verdict, verify } from "./verify.js";

export const VARIANTS = [
  { name: "careful", durability: "fsync", spare: true },
  { name: "reckless", durability: "fast", spare: false },
] as const;

/** Runs and kills the child, lets it finish, and verifies the data directory. */
export async function runAndVerify(options: RunOptions): Promise<Verdict> {
  mkdirSync(options.folder, { recursive: true });
  const { acknowledged, data, effects, problems } = await runAndKill(options);
  const store = await openStore({ directory: data });
  try {
    const verdict = await verify(store, { acknowledged, effects: readEffects(effects) });
    return { ...verdict, violations: [...problems, ...verdict.violations] };
  } finally {
    await store.close();
  }
}

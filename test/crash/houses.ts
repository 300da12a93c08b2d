/** Data directories that are worked on side by side, each killed in its own way, and what is found in them. */
import { mkdirSync } from "node:fs";
import { openStore } from "../../src/store/index.js";
import { readEffects } from "./effects.js";
import { type RunOptions, runAndKill } from "./run.js";
import { type Verdict, verify } from "./verify.js";

export const HOUSES = [
  { name: "careful", durability: "fsync", spare: true },
  { name: "reckless", durability: "fast", spare: false },
] as const;

/** Runs, kills, lets finish, and looks at what there is then. */
export async function judge(options: RunOptions): Promise<Verdict> {
  mkdirSync(options.folder, { recursive: true });
  const { acknowledged, data, effects, complaints } = await runAndKill(options);
  const store = await openStore({ directory: data });
  try {
    const verdict = await verify(store, { acknowledged, effects: readEffects(effects) });
    return { ...verdict, violations: [...complaints, ...verdict.violations] };
  } finally {
    await store.close();
  }
}

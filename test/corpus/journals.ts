/** What is looked at when an old journal is loaded, and how the files of the corpus are read. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Entry } from "../../src/engine/task/entries.js";
import { historyOf, type TaskState } from "../../src/engine/task/state.js";

export const CORPUS = fileURLToPath(new URL(".", import.meta.url));

/** What a journal means to those who use the task. It must mean the same in every later version. */
export interface Summary {
  readonly status: string;
  readonly number: number;
  readonly steps: number;
  readonly error?: string;
  readonly ending?: string;
  readonly contributors: readonly string[];
  readonly agents: Readonly<Record<string, AgentSummary>>;
  readonly outstanding: number;
  readonly outbound: number;
  readonly usage?: unknown;
  readonly budget?: unknown;
  readonly adminBudget?: unknown;
}

interface AgentSummary {
  /** Kinds of the items of its memory, in order. */
  readonly history: string;
  readonly waiting: number;
  readonly open: number;
  readonly inTurn: boolean;
}

export function summaryOf(state: TaskState): Summary {
  const agents = [...state.agents].map(([name, agent]): [string, AgentSummary] => [
    name,
    {
      history: historyOf(state, name)
        .map(({ kind }) => kind)
        .join(" "),
      waiting: agent.mailbox.length,
      open: agent.open.length,
      inTurn: agent.turn !== undefined,
    },
  ]);
  return {
    status: state.status,
    number: state.number,
    steps: state.steps,
    ...(state.error !== undefined && { error: `${state.error.code}: ${state.error.message}` }),
    ...(state.ending !== undefined && { ending: state.ending.message.message.body }),
    contributors: state.contributors,
    agents: Object.fromEntries(agents),
    outstanding: state.outstanding.length,
    outbound: state.outbound.length,
    ...(state.usage !== undefined && { usage: state.usage }),
    ...(state.budget !== undefined && { budget: state.budget }),
    ...(state.adminBudget !== undefined && { adminBudget: state.adminBudget }),
  };
}

/** Names of the versions of which there are journals. */
export function versions(): string[] {
  return readdirSync(CORPUS).filter((name) => /^v\d+$/.test(name));
}

export function journalsOf(version: string): string[] {
  return readdirSync(join(CORPUS, version)).filter((name) => name.endsWith(".jsonl"));
}

export function readJournal(...path: string[]): Entry[] {
  return readFileSync(join(CORPUS, ...path), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

export function readSummaries(version: string): Record<string, Summary> {
  return JSON.parse(readFileSync(join(CORPUS, version, "expected.json"), "utf8"));
}

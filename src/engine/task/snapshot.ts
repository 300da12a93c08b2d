/** Converts a task's state into snapshot parts and back. Snapshots only save time: the journal gives the same state. */
import type { SnapshotPart } from "../../journal/index.js";
import type { HistoryItem } from "../agent.js";
import type { AgentState, TaskState } from "./state.js";

const SNAPSHOT_VERSION = 5;

/** History items in one part. A full part no longer changes and is not written again. */
const ITEMS_PER_PART = 1_000;
/** Characters of history after which a part is full, regardless of the number of items. */
const PART_SIZE = 1_000_000;

type FrozenAgent = Omit<AgentState, "history">;

interface FrozenState extends Omit<TaskState, "agents" | "stepped" | "taken"> {
  readonly v: number;
  readonly agents: readonly (readonly [string, FrozenAgent])[];
  readonly stepped: readonly string[];
  readonly taken: readonly number[];
}

interface FrozenHistory {
  readonly agent: string;
  readonly items: readonly HistoryItem[];
}

export function* freeze(state: TaskState): Generator<SnapshotPart, void, undefined> {
  const agents: [string, FrozenAgent][] = [];
  for (const [agent, { history, ...rest }] of state.agents) {
    let index = 0;
    for (const data of historyParts(agent, history)) {
      // Parts are read in the order of their names.
      yield { name: `history/${padded(agents.length)}/${padded(index)}`, data };
      index++;
    }
    agents.push([agent, rest]);
  }
  const frozen: FrozenState = {
    ...state,
    v: SNAPSHOT_VERSION,
    agents,
    stepped: [...state.stepped],
    taken: [...state.taken],
  };
  yield { name: "state", data: JSON.stringify(frozen) };
}

function padded(index: number): string {
  return index.toString().padStart(6, "0");
}

function* historyParts(agent: string, history: readonly HistoryItem[]): Generator<string, void, undefined> {
  let texts: string[] = [];
  let size = 0;
  const close = (): string => {
    const data = `{"agent":${JSON.stringify(agent)},"items":[${texts.join(",")}]}`;
    texts = [];
    size = 0;
    return data;
  };
  for (const item of history) {
    const text = JSON.stringify(item);
    texts.push(text);
    size += text.length;
    if (texts.length >= ITEMS_PER_PART || size >= PART_SIZE) yield close();
  }
  if (texts.length > 0) yield close();
}

/** Returns `undefined` for a snapshot of another version. The journal is then read from its beginning. */
export function thaw(parts: readonly SnapshotPart[]): TaskState | undefined {
  const header = parts.find(({ name }) => name === "state");
  if (header === undefined) return undefined;
  // Trusted: the version identifies our own format, and only `freeze` writes parts.
  const frozen: FrozenState = JSON.parse(header.data);
  if (frozen.v !== SNAPSHOT_VERSION) return undefined;
  const histories = new Map<string, HistoryItem[]>();
  for (const { name, data } of parts) {
    if (name === "state") continue;
    const { agent, items }: FrozenHistory = JSON.parse(data);
    const history = histories.get(agent);
    if (history === undefined) histories.set(agent, [...items]);
    else for (const item of items) history.push(item);
  }
  const { v: _, agents, stepped, taken, ...rest } = frozen;
  return {
    ...rest,
    agents: new Map(agents.map(([name, agent]) => [name, { ...agent, history: histories.get(name) ?? [] }])),
    stepped: new Set(stepped),
    taken: new Set(taken),
  };
}

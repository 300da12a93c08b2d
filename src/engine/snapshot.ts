/** A task's state in parts and back. A snapshot only saves time: the journal alone gives the same state. */
import type { SnapshotPart } from "../journal/ports.js";
import type { HistoryItem } from "./agent.js";
import type { AgentState, TaskState } from "./state.js";

const SNAPSHOT_VERSION = 2;

/** History items in one part. A part that is full does not change any more, and is not written again. */
const ITEMS_PER_PART = 1_000;
/** Characters of history after which a part is full in any case. */
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

/** `undefined` for a snapshot of another version: the journal is read from its beginning instead. */
export function thaw(parts: readonly SnapshotPart[]): TaskState | undefined {
  const header = parts.find(({ name }) => name === "state");
  if (header === undefined) return undefined;
  // Our own writing, told by its version; the store keeps it from being anything else.
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

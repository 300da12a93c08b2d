/** A task's state as text and back. A snapshot only saves time: the journal alone gives the same state. */
import { isRecord } from "../mail/record.js";
import type { AgentState, TaskState } from "./state.js";

const SNAPSHOT_VERSION = 1;

interface Frozen extends Omit<TaskState, "agents" | "stepped"> {
  readonly agents: [string, AgentState][];
  readonly stepped: string[];
}

export function freeze(state: TaskState): string {
  const frozen: Frozen = { ...state, agents: [...state.agents], stepped: [...state.stepped] };
  return JSON.stringify({ v: SNAPSHOT_VERSION, state: frozen });
}

/** `undefined` for a snapshot of another version: the journal is read from its beginning instead. */
export function thaw(data: string): TaskState | undefined {
  const parsed: unknown = JSON.parse(data);
  if (!isSnapshot(parsed)) return undefined;
  const { state } = parsed;
  return { ...state, agents: new Map(state.agents), stepped: new Set(state.stepped) };
}

/** Our own writing, told by its version; the store keeps it from being anything else. */
function isSnapshot(value: unknown): value is { readonly v: number; readonly state: Frozen } {
  return isRecord(value) && value.v === SNAPSHOT_VERSION && isRecord(value.state);
}

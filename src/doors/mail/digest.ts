/**
 * A task in figures: sums over its journal, who worked when, and what waits for a person. Read from the store when it is
 * asked for and kept for the next time, so that it costs nothing on the path of a message.
 */
import type { z } from "zod";
import {
  type Entry,
  type HoldReason,
  type InstanceId,
  type ReachedLimit,
  type Store,
  type TASK_STATUSES,
  usedIn,
} from "../../engine/index.js";
import { type JournalKey, Projection, systemLoop } from "../../journal/index.js";
import {
  type AgentToolCall,
  isInterswarmAddress,
  type MAILMessage,
  normalizeBreakpointCall,
  parseAgentAddress,
  recipientsOf,
} from "../../mail/index.js";
import type { TaskDigest } from "./schemas/digest.js";

/** Entries that are counted. A longer task is described by its beginning. */
const MOST_ENTRIES = 20_000;
/** Digests that are kept. */
const CACHED = 1_000;
const MOST_LANES = 120;
/** Names of agents that are kept for a task. */
const MOST_PARTIES = 1_000;

const LANE_FAILED = 1;
const LANE_OPEN = 2;
const LANE_PAUSED = 4;

/** Index of the agent, from, to, flags; milliseconds since the task was opened. */
type Lane = [agent: number, from: number, to: number, flags: number];

/** A message that agents have not taken yet. */
interface Waiting {
  readonly at: number;
  readonly isSystem: boolean;
  /** The id of a message to several agents, which is one step. */
  readonly shared: string | undefined;
  readonly left: Set<string>;
}

interface OpenCall {
  readonly agent: string;
  readonly call: AgentToolCall;
}

interface Held {
  readonly reason: HoldReason;
  readonly agent: string;
  readonly message: string;
  readonly limit?: ReachedLimit;
}

interface DigestState {
  readonly key: string;
  readonly taskId: string;
  readonly owner: InstanceId;
  readonly swarm: string;
  readonly openedAt: number;
  number: number;
  at: number;
  status: (typeof TASK_STATUSES)[number];
  messages: number;
  turns: number;
  failedTurns: number;
  actions: number;
  failedActions: number;
  steps: number;
  maxSteps: number | undefined;
  readonly stepped: Set<string>;
  calls: number;
  failedCalls: number;
  input: number;
  output: number;
  cached: number;
  cost: number | undefined;
  waited: number;
  pausedAt: number | undefined;
  readonly agents: Map<string, number>;
  /** Agents that sent, received or worked; `name@swarm` and `@swarm` for those of other swarms. */
  readonly parties: Set<string>;
  lanes: Lane[];
  /** By agent: when its last block ended. */
  readonly busyUntil: Map<string, number>;
  readonly waiting: Map<number, Waiting>;
  /** Calls whose results a person supplies. */
  open: OpenCall[];
  /** Calls that a person approves or rejects. */
  asked: (OpenCall & { readonly expires: number | undefined })[];
  /** Whom the owner named: principals and roles. */
  approvers: readonly string[];
  held: Held | undefined;
}

export class TaskDigests {
  readonly #projection: Projection<DigestState, Entry>;

  constructor(store: Pick<Store, "read">) {
    this.#projection = new Projection<DigestState, Entry>({
      read: (key, options) => store.read(key, options),
      loop: systemLoop,
      most: CACHED,
      number: ({ number }) => number,
      add,
    });
  }

  async of(key: JournalKey): Promise<z.output<typeof TaskDigest> | undefined> {
    const state = await this.#projection.get(key);
    return state === undefined ? undefined : toDigest(state);
  }

  /** Whether an agent took part in a task: `name`, `name@swarm`, or `@swarm` for any agent of another swarm. */
  async involves(key: JournalKey, agent: string): Promise<boolean> {
    const state = await this.#projection.get(key);
    return state?.parties.has(agent) === true;
  }
}

function add(known: DigestState | undefined, entries: readonly Entry[]): DigestState | undefined {
  const [first] = entries;
  let state = known;
  if (state === undefined) {
    if (first?.t !== "opened") return undefined;
    state = begin(first);
  }
  for (const entry of known === undefined ? entries.slice(1) : entries) {
    state.number++;
    if (state.number <= MOST_ENTRIES) count(state, entry);
  }
  return state;
}

function begin({ task, at }: Extract<Entry, { t: "opened" }>): DigestState {
  return {
    key: task.key,
    taskId: task.taskId,
    owner: task.instance,
    swarm: task.swarm,
    openedAt: at,
    number: 1,
    at,
    status: "running",
    messages: 0,
    turns: 0,
    failedTurns: 0,
    actions: 0,
    failedActions: 0,
    steps: 0,
    maxSteps: task.maxSteps,
    stepped: new Set(),
    calls: 0,
    failedCalls: 0,
    input: 0,
    output: 0,
    cached: 0,
    cost: undefined,
    waited: 0,
    pausedAt: undefined,
    agents: new Map(),
    parties: new Set([task.entrypoint]),
    lanes: [],
    busyUntil: new Map(),
    waiting: new Map(),
    open: [],
    asked: [],
    approvers: [],
    held: undefined,
  };
}

function count(state: DigestState, entry: Entry): void {
  state.at = entry.at;
  if ("usage" in entry) countUsage(state, entry);
  switch (entry.t) {
    case "sent": {
      const { message, to } = entry;
      const isSystem = message.message.sender.address_type === "system";
      if (!isSystem) {
        state.messages++;
        noteParties(state, message, to);
      }
      const isShared = message.msg_type === "broadcast" || message.msg_type === "interrupt";
      if (to.length > 0) {
        const shared = isShared ? message.id : undefined;
        state.waiting.set(state.number, { at: entry.at, isSystem, shared, left: new Set(to) });
      }
      return;
    }
    case "turn":
      state.turns++;
      return turnEnded(state, entry, 0);
    case "turn_failed":
      state.turns++;
      state.failedTurns++;
      return turnEnded(state, entry, LANE_FAILED);
    case "action_started":
      if (entry.attempt <= 1) state.actions++;
      return;
    case "action_finished":
      if (!entry.ok) state.failedActions++;
      return;
    case "paused":
      state.status = "paused";
      state.pausedAt = entry.at;
      if (entry.approvals === undefined)
        state.open = entry.calls.map((call) => ({ agent: entry.agent, call }));
      state.held =
        entry.reason === undefined
          ? undefined
          : {
              reason: entry.reason,
              agent: entry.agent,
              message: entry.message.message.body,
              ...(entry.limit !== undefined && { limit: entry.limit }),
            };
      return;
    case "approval_asked": {
      const call = { id: entry.call, name: entry.name, args: entry.args };
      state.asked.push({ agent: entry.agent, call, expires: entry.expires });
      return;
    }
    case "approval_answered":
    case "result":
      state.asked = without(state.asked, entry);
      state.open = without(state.open, entry);
      return;
    case "resumed":
      goOn(state, "running");
      state.steps = 0;
      state.stepped.clear();
      if (entry.maxSteps !== undefined) state.maxSteps = entry.maxSteps ?? undefined;
      return;
    case "approvers":
      state.approvers = entry.approvers;
      return;
    case "completed":
    case "failed":
    case "cancelled":
      return goOn(state, entry.t);
    default:
      return;
  }
}

function without<Call extends OpenCall>(
  calls: Call[],
  { agent, call }: { readonly agent: string; readonly call: string },
): Call[] {
  return calls.length === 0 ? calls : calls.filter((one) => one.agent !== agent || one.call.id !== call);
}

function countUsage(state: DigestState, entry: Parameters<typeof usedIn>[0]): void {
  const used = usedIn(entry);
  if (used === undefined) return;
  state.calls += used.calls;
  state.failedCalls += used.failedCalls;
  state.input += used.inputTokens;
  state.output += used.outputTokens;
  state.cached += used.cachedInputTokens;
  if (used.cost !== undefined) state.cost = (state.cost ?? 0) + used.cost;
}

function goOn(state: DigestState, status: DigestState["status"]): void {
  if (state.pausedAt !== undefined) state.waited += state.at - state.pausedAt;
  state.pausedAt = undefined;
  state.status = status;
  state.open = [];
  state.held = undefined;
}

function turnEnded(
  state: DigestState,
  { agent, took, at }: { readonly agent: string; readonly took: readonly number[]; readonly at: number },
  flags: number,
): void {
  let from = at;
  for (const number of took) {
    const mail = state.waiting.get(number);
    if (mail === undefined) continue;
    from = Math.min(from, mail.at);
    countStep(state, mail);
    mail.left.delete(agent);
    if (mail.left.size === 0) state.waiting.delete(number);
  }
  // It could not begin before it had finished the turn before.
  const began = Math.max(from, state.busyUntil.get(agent) ?? 0);
  state.lanes.push([indexOf(state, agent), began - state.openedAt, at - state.openedAt, flags]);
  state.busyUntil.set(agent, at);
  if (state.lanes.length > 2 * MOST_LANES) state.lanes = thinned(state.lanes);
}

/** As the engine counts them (decision B8). */
function countStep(state: DigestState, { isSystem, shared }: Waiting): void {
  if (isSystem) return;
  if (shared !== undefined) {
    if (state.stepped.has(shared)) return;
    state.stepped.add(shared);
  }
  state.steps++;
}

function noteParties({ parties, swarm }: DigestState, message: MAILMessage, to: readonly string[]): void {
  if (parties.size >= MOST_PARTIES) return;
  for (const name of to) parties.add(name);
  for (const { address, address_type } of [message.message.sender, ...recipientsOf(message)]) {
    if (address_type !== "agent" || !isInterswarmAddress(address, swarm)) continue;
    parties.add(address).add(`@${parseAgentAddress(address).swarm}`);
  }
}

function indexOf(state: DigestState, agent: string): number {
  const known = state.agents.get(agent);
  if (known !== undefined) return known;
  if (state.parties.size < MOST_PARTIES) state.parties.add(agent);
  state.agents.set(agent, state.agents.size);
  return state.agents.size - 1;
}

/** Joins neighboring blocks of each agent until there are few enough. */
function thinned(lanes: readonly Lane[]): Lane[] {
  let joined: Lane[] = [...lanes];
  while (joined.length > MOST_LANES) {
    const open = new Map<number, Lane>();
    const next: Lane[] = [];
    for (const [agent, from, to, flags] of joined) {
      const before = open.get(agent);
      if (before === undefined) {
        const lane: Lane = [agent, from, to, flags];
        open.set(agent, lane);
        next.push(lane);
      } else {
        before[2] = to;
        before[3] |= flags;
        open.delete(agent);
      }
    }
    // More agents than blocks that fit.
    if (next.length === joined.length) return next.slice(-MOST_LANES);
    joined = next;
  }
  return joined;
}

function toDigest(state: DigestState): z.output<typeof TaskDigest> {
  const { owner } = state;
  return {
    task_id: state.taskId,
    key: state.key,
    number: state.number,
    messages: state.messages,
    turns: state.turns,
    failed_turns: state.failedTurns,
    actions: state.actions,
    failed_actions: state.failedActions,
    steps: state.steps,
    max_steps: state.maxSteps ?? null,
    model_calls: state.calls,
    failed_model_calls: state.failedCalls,
    tokens: { input: state.input, output: state.output, cached: state.cached },
    cost: state.cost ?? null,
    waited_ms: state.waited,
    paused_at: state.pausedAt ?? null,
    agents: [...state.agents.keys(), ...newcomers(state)],
    others: [...state.parties].filter((name) => name.indexOf("@") > 0),
    lanes: shownLanes(state),
    open: state.status === "paused" ? openCalls(state) : [],
    held: state.held ?? null,
    answerers: [`${owner.role}:${owner.id}`, ...state.approvers],
    ...(state.number > MOST_ENTRIES && { partial: true }),
  };
}

function openCalls({ open, asked }: DigestState): z.output<typeof TaskDigest>["open"] {
  return [
    ...open.map(({ agent, call }) => ({
      ...normalizeBreakpointCall(call),
      agent,
      kind: "breakpoint" as const,
    })),
    ...asked.map(({ agent, call, expires }) => ({
      ...normalizeBreakpointCall(call),
      agent,
      kind: "approval" as const,
      ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
    })),
  ];
}

/** Agents that have mail and have not had a turn. */
function newcomers(state: DigestState): string[] {
  const names = new Set<string>();
  for (const { left } of state.waiting.values()) for (const name of left) names.add(name);
  return [...names].filter((name) => !state.agents.has(name));
}

function shownLanes(state: DigestState): Lane[] {
  const { openedAt, at } = state;
  if (state.status === "running") {
    const names = [...state.agents.keys(), ...newcomers(state)];
    const since = new Map<string, number>();
    for (const mail of state.waiting.values()) {
      for (const name of mail.left) since.set(name, Math.min(mail.at, since.get(name) ?? mail.at));
    }
    const open = [...since].map(([name, from]): Lane => {
      const began = Math.max(from, state.busyUntil.get(name) ?? 0);
      return [names.indexOf(name), began - openedAt, at - openedAt, LANE_OPEN];
    });
    return thinned([...state.lanes, ...open]);
  }
  const lanes = thinned(state.lanes);
  const last = lanes.at(-1);
  if (state.status !== "paused" || last === undefined) return lanes;
  return [...lanes.slice(0, -1), [last[0], last[1], last[2], last[3] | LANE_PAUSED]];
}

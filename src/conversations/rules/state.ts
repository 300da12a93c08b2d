/**
 * The state of a conversation.
 *
 * Everything records the number of the entry that created it, so that each question can be asked as of a
 * number. Readers ask as of the last commit while writers are ahead of it, and an event goes to the members
 * at its own number. Contents of turns are not held; they are read from the journal when needed.
 */
import type { ConversationEntry, Created, Joined, SummaryMade, ThreadCreated } from "./entries.js";
import { roughSize } from "./size.js";
import type {
  AgentInfo,
  Conversation,
  ConversationStatus,
  Participant,
  ParticipantRole,
  ParticipantType,
  Permissions,
  TurnStatus,
  Visibility,
} from "./types.js";

/** One period of membership: from the entry that added the participant to the entry that removed it. */
export interface MembershipPeriod {
  readonly joined: number;
  readonly joinedAt: number;
  readonly role: ParticipantRole;
  readonly permissions: Permissions;
  readonly invitation?: Participant["_meta"];
  /** True if the participant joined by itself. */
  readonly own: boolean;
  readonly beside?: string;
  left?: number;
  leftAt?: number;
  /** True if another member removed it. */
  removed?: boolean;
  /** Later roles and permissions. */
  changes?: { readonly number: number; readonly role: ParticipantRole; readonly permissions: Permissions }[];
}

export interface ParticipantRecord {
  readonly id: string;
  readonly type: ParticipantType;
  readonly agentInfo?: AgentInfo;
  /** The authenticated caller that the id belongs to, as far as the journal says. */
  principal: string | undefined;
  readonly periods: MembershipPeriod[];
}

/** A turn without its content. */
export interface TurnRecord {
  readonly number: number;
  readonly id: string;
  readonly author: string;
  readonly at: number;
  readonly contentType: string;
  readonly threadId: string | undefined;
  /** The first turn of its thread: who may not see that one sees nothing of the thread. */
  readonly root: TurnRecord | undefined;
  readonly visibility: Visibility | undefined;
  readonly internal: boolean;
  /** Approximate bytes of the turn with its content, so that a page can be bounded before it is read. */
  readonly size: number;
  /** As it was recorded. */
  readonly status: TurnStatus;
  /** Status changes after the turn was recorded. */
  statuses: { readonly number: number; readonly status: TurnStatus }[] | undefined;
}

export interface ThreadRecord {
  readonly number: number;
  readonly header: ThreadCreated["thread"];
  readonly depth: number;
  readonly root: TurnRecord;
  readonly turns: TurnRecord[];
}

interface StatusChange {
  readonly number: number;
  readonly at: number;
  readonly status: ConversationStatus;
}

export interface ConversationState {
  readonly header: Created["conversation"];
  readonly createdAt: number;
  /** The last number of the creation. The first members see everything up to here. */
  readonly foundingUpTo: number;
  /** The number of the last entry. */
  number: number;
  readonly participants: Map<string, ParticipantRecord>;
  /** Ids that a turn addressed before they were members, with the author of the latest such turn. */
  readonly addressed: Map<string, string>;
  readonly turns: TurnRecord[];
  readonly turnsById: Map<string, TurnRecord>;
  readonly threads: Map<string, ThreadRecord>;
  readonly statuses: StatusChange[];
  readonly summaries: Map<string, SummaryMade & { readonly number: number }>;
  /** Times by number, for `updatedAt` as of a number. Times never decrease, so changes are enough. */
  readonly times: { number: number; at: number }[];
}

/** Ids of non-members that a conversation holds in memory because they were addressed. */
const MAX_ADDRESSED = 10_000;

const CLOSED: ReadonlySet<ConversationStatus> = new Set(["completed", "failed", "archived"]);

export function isClosed(status: ConversationStatus): boolean {
  return CLOSED.has(status);
}

export function beginState(entry: Created): ConversationState {
  return {
    header: entry.conversation,
    createdAt: entry.at,
    foundingUpTo: 1 + entry.founders,
    number: 1,
    participants: new Map(),
    addressed: new Map(),
    turns: [],
    turnsById: new Map(),
    threads: new Map(),
    statuses: [{ number: 1, at: entry.at, status: "active" }],
    summaries: new Map(),
    times: [{ number: 1, at: entry.at }],
  };
}

/** Applies the next entry. Mutates the state, because this is the hot path and entries are never undone. */
export function evolve(state: ConversationState, entry: ConversationEntry): void {
  const number = state.number + 1;
  state.number = number;
  noteTime(state, number, entry.at);
  switch (entry.t) {
    case "created":
      throw new Error(`conversation ${state.header.id} is created twice in its journal`);
    case "joined":
      join(state, number, entry);
      return;
    case "left": {
      const period = state.participants.get(entry.participantId)?.periods.at(-1);
      if (period === undefined) return;
      period.left = number;
      period.leftAt = entry.at;
      period.removed = entry.by !== entry.participantId;
      return;
    }
    case "turn": {
      const { turn } = entry;
      const thread = turn.threadId === undefined ? undefined : state.threads.get(turn.threadId);
      const record: TurnRecord = {
        number,
        id: turn.id,
        author: turn.participant,
        at: turn.timestamp,
        contentType: turn.contentType,
        internal: turn.metadata.internal === true,
        threadId: turn.threadId,
        root: thread?.root,
        visibility: turn.visibility,
        size: roughSize(turn),
        status: turn.status,
        statuses: undefined,
      };
      state.turns.push(record);
      state.turnsById.set(record.id, record);
      thread?.turns.push(record);
      for (const id of entry.addressed ?? []) noteAddressed(state, id, turn.participant);
      return;
    }
    case "turn_updated": {
      const turn = state.turnsById.get(entry.turnId);
      if (turn === undefined) return;
      turn.statuses ??= [];
      turn.statuses.push({ number, status: entry.status });
      return;
    }
    case "thread": {
      const root = state.turnsById.get(entry.thread.rootTurnId);
      if (root === undefined)
        throw new Error(`thread ${entry.thread.id} has no root turn in its conversation`);
      state.threads.set(entry.thread.id, {
        number,
        header: entry.thread,
        depth: entry.depth,
        root,
        turns: [],
      });
      return;
    }
    case "closed":
      state.statuses.push({ number, at: entry.at, status: "completed" });
      return;
    case "status":
      state.statuses.push({ number, at: entry.at, status: entry.status });
      return;
    case "member": {
      const period = state.participants.get(entry.participantId)?.periods.at(-1);
      if (period === undefined) return;
      period.changes ??= [];
      period.changes.push({ number, role: entry.role, permissions: entry.permissions });
      return;
    }
    case "summary":
      state.summaries.set(entry.scope, { ...entry, number });
      return;
    default:
      entry satisfies never;
  }
}

function join(
  state: ConversationState,
  number: number,
  { participant, by, principal, beside }: Joined,
): void {
  const known = state.participants.get(participant.id);
  const period: MembershipPeriod = {
    joined: number,
    joinedAt: participant.joinedAt,
    role: participant.role,
    permissions: participant.permissions,
    own: by === participant.id,
    ...(participant._meta !== undefined && { invitation: participant._meta }),
    ...(beside !== undefined && { beside }),
  };
  state.addressed.delete(participant.id);
  if (known !== undefined) {
    known.periods.push(period);
    known.principal ??= principal;
    return;
  }
  state.participants.set(participant.id, {
    id: participant.id,
    type: participant.type,
    ...(participant.agentInfo !== undefined && { agentInfo: participant.agentInfo }),
    principal,
    periods: [period],
  });
}

/** Beyond the limit those addressed first need an invitation. */
function noteAddressed({ addressed }: ConversationState, id: string, by: string): void {
  addressed.delete(id);
  addressed.set(id, by);
  if (addressed.size <= MAX_ADDRESSED) return;
  const [first] = addressed.keys();
  if (first !== undefined) addressed.delete(first);
}

/** Many entries share a millisecond; only changes are stored. */
function noteTime(state: ConversationState, number: number, at: number): void {
  const last = state.times.at(-1);
  if (last !== undefined && last.at >= at) return;
  state.times.push({ number, at });
  // Only numbers that are not committed yet are asked about, so a short history is enough.
  if (state.times.length > 1024) state.times.splice(1, 512);
}

// --- as of a number -----------------------------------------------------------------------------------------------

/** The membership period that is open as of `number`, if any. */
export function activePeriod(
  record: ParticipantRecord | undefined,
  number: number,
): MembershipPeriod | undefined {
  const period = record?.periods.findLast(({ joined }) => joined <= number);
  if (period === undefined || (period.left !== undefined && period.left <= number)) return undefined;
  return periodAsOf(period, number);
}

/** The period with the role and the permissions that the member had as of `number`. */
export function periodAsOf(period: MembershipPeriod, number: number): MembershipPeriod {
  const change = period.changes?.findLast((candidate) => candidate.number <= number);
  return change === undefined ? period : { ...period, role: change.role, permissions: change.permissions };
}

/** The most recent period, open or closed, with the latest role and permissions. */
export function latestPeriod(record: ParticipantRecord | undefined): MembershipPeriod | undefined {
  const period = record?.periods.at(-1);
  return period === undefined ? undefined : periodAsOf(period, Number.POSITIVE_INFINITY);
}

export function statusAt(state: ConversationState, number: number): StatusChange {
  const change = state.statuses.findLast((candidate) => candidate.number <= number) ?? state.statuses[0];
  return change ?? { number: 1, at: state.createdAt, status: "active" };
}

export function activeCount(state: ConversationState, number: number): number {
  let count = 0;
  for (const record of state.participants.values()) if (activePeriod(record, number) !== undefined) count++;
  return count;
}

export function lastTime(state: ConversationState): number {
  return state.times.at(-1)?.at ?? state.createdAt;
}

export function conversationAt(state: ConversationState, number: number): Conversation {
  const { space: _space, ...header } = state.header;
  const { status, at } = statusAt(state, number);
  const updated = state.times.findLast((time) => time.number <= number)?.at ?? state.createdAt;
  return {
    ...header,
    status,
    participantCount: activeCount(state, number),
    createdAt: state.createdAt,
    updatedAt: updated,
    ...(isClosed(status) && { closedAt: at }),
  };
}

export function participantAt(record: ParticipantRecord, number: number): Participant | undefined {
  const found = record.periods.findLast(({ joined }) => joined <= number);
  if (found === undefined) return undefined;
  const period = periodAsOf(found, number);
  const gone = period.left !== undefined && period.left <= number;
  return {
    id: record.id,
    type: record.type,
    role: period.role,
    joinedAt: period.joinedAt,
    ...(gone && period.leftAt !== undefined && { leftAt: period.leftAt }),
    permissions: period.permissions,
    ...(record.agentInfo !== undefined && { agentInfo: record.agentInfo }),
    ...(period.invitation !== undefined && { _meta: period.invitation }),
  };
}

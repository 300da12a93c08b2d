/**
 * What a conversation's journal adds up to.
 *
 * Everything carries the number of the entry that made it, so that any question can be asked *as of* a number: readers
 * ask as of what is committed while writers are ahead of it, and an event is shown to those who were members when it
 * happened. Contents of turns are not held; they are read from the journal when they are shown.
 */
import type { ConversationEntry, Created, SummaryMade, ThreadCreated } from "./entries.js";
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

/** One stay of a participant: from the entry that let it in to the one that let it go. */
export interface Stint {
  readonly joined: number;
  readonly joinedAt: number;
  readonly role: ParticipantRole;
  readonly permissions: Permissions;
  readonly invitation?: Participant["_meta"];
  left?: number;
  leftAt?: number;
  /** By somebody else. */
  removed?: boolean;
}

export interface ParticipantRecord {
  readonly id: string;
  readonly type: ParticipantType;
  readonly agentInfo?: AgentInfo;
  readonly stints: Stint[];
}

/** A turn without its content. */
export interface TurnRecord {
  readonly number: number;
  readonly id: string;
  readonly author: string;
  readonly at: number;
  readonly contentType: string;
  readonly threadId: string | undefined;
  readonly visibility: Visibility | undefined;
  readonly internal: boolean;
  /** Later than the one it was recorded with. */
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
  /** Members that came with the creation have joined up to here: they saw all of it. */
  readonly foundingUpTo: number;
  /** The number of the last entry. */
  number: number;
  readonly participants: Map<string, ParticipantRecord>;
  readonly turns: TurnRecord[];
  readonly turnsById: Map<string, TurnRecord>;
  readonly threads: Map<string, ThreadRecord>;
  readonly statuses: StatusChange[];
  readonly summaries: Map<string, SummaryMade & { readonly number: number }>;
  /** When each entry happened is needed for `updatedAt` as of a number: times only grow, so pairs are enough. */
  readonly times: { number: number; at: number }[];
}

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
    turns: [],
    turnsById: new Map(),
    threads: new Map(),
    statuses: [{ number: 1, at: entry.at, status: "active" }],
    summaries: new Map(),
    times: [{ number: 1, at: entry.at }],
  };
}

/** Adds the next entry. Changes the state in place: it is the hot path, and a journal is never unsaid. */
export function evolve(state: ConversationState, entry: ConversationEntry): void {
  const number = state.number + 1;
  state.number = number;
  noteTime(state, number, entry.at);
  switch (entry.t) {
    case "created":
      throw new Error(`conversation ${state.header.id} is created twice in its journal`);
    case "joined":
      join(state, number, entry.participant);
      return;
    case "left": {
      const stint = state.participants.get(entry.participantId)?.stints.at(-1);
      if (stint === undefined) return;
      stint.left = number;
      stint.leftAt = entry.at;
      stint.removed = entry.by !== entry.participantId;
      return;
    }
    case "turn": {
      const { turn } = entry;
      const record: TurnRecord = {
        number,
        id: turn.id,
        author: turn.participant,
        at: turn.timestamp,
        contentType: turn.contentType,
        internal: turn.metadata.internal === true,
        threadId: turn.threadId,
        visibility: turn.visibility,
        statuses: undefined,
      };
      state.turns.push(record);
      state.turnsById.set(record.id, record);
      if (turn.threadId !== undefined) state.threads.get(turn.threadId)?.turns.push(record);
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
    case "summary":
      state.summaries.set(entry.scope, { ...entry, number });
      return;
    default:
      entry satisfies never;
  }
}

function join(state: ConversationState, number: number, participant: Participant): void {
  const known = state.participants.get(participant.id);
  const stint: Stint = {
    joined: number,
    joinedAt: participant.joinedAt,
    role: participant.role,
    permissions: participant.permissions,
    ...(participant._meta !== undefined && { invitation: participant._meta }),
  };
  if (known !== undefined) {
    known.stints.push(stint);
    return;
  }
  state.participants.set(participant.id, {
    id: participant.id,
    type: participant.type,
    ...(participant.agentInfo !== undefined && { agentInfo: participant.agentInfo }),
    stints: [stint],
  });
}

/** Many entries share a millisecond; only changes are kept. */
function noteTime(state: ConversationState, number: number, at: number): void {
  const last = state.times.at(-1);
  if (last !== undefined && last.at >= at) return;
  state.times.push({ number, at });
  // Nobody asks about the distant past: this only has to reach back over what is not committed yet.
  if (state.times.length > 1024) state.times.splice(1, 512);
}

// --- as of a number -----------------------------------------------------------------------------------------------

/** The stay of a participant that is not over as of `number`, if there is one. */
export function activeStint(record: ParticipantRecord | undefined, number: number): Stint | undefined {
  const stint = record?.stints.findLast(({ joined }) => joined <= number);
  return stint !== undefined && (stint.left === undefined || stint.left > number) ? stint : undefined;
}

export function statusAt(state: ConversationState, number: number): StatusChange {
  const change = state.statuses.findLast((candidate) => candidate.number <= number) ?? state.statuses[0];
  return change ?? { number: 1, at: state.createdAt, status: "active" };
}

export function activeCount(state: ConversationState, number: number): number {
  let count = 0;
  for (const record of state.participants.values()) if (activeStint(record, number) !== undefined) count++;
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
  const stint = record.stints.findLast(({ joined }) => joined <= number);
  if (stint === undefined) return undefined;
  const gone = stint.left !== undefined && stint.left <= number;
  return {
    id: record.id,
    type: record.type,
    role: stint.role,
    joinedAt: stint.joinedAt,
    ...(gone && stint.leftAt !== undefined && { leftAt: stint.leftAt }),
    permissions: stint.permissions,
    ...(record.agentInfo !== undefined && { agentInfo: record.agentInfo }),
    ...(stint.invitation !== undefined && { _meta: stint.invitation }),
  };
}

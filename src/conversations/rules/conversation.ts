/**
 * A conversation as an aggregate of the journal kernel. The rules themselves are in the other files of this
 * folder.
 */
import type { Aggregate, DecisionContext as KernelMoment, Types } from "../../journal/index.js";
import type { ConversationRules } from "../settings.js";
import { assertCapability } from "./checks.js";
import {
  decideChange,
  decideClose,
  decideCreate,
  decideInvite,
  decideJoin,
  decideLeave,
  decideMember,
  decideStatus,
} from "./decide-members.js";
import {
  decideInterception,
  decideProgress,
  decideThread,
  decideTurn,
  decideTurnStatus,
  type Interception,
} from "./decide-turns.js";
import { type DecisionContext, timeIn } from "./decision-context.js";
import type { ConversationEntry, Joined, Reservation, SummaryMade } from "./entries.js";
import { denied, MapError } from "./errors.js";
import type {
  CloseParams,
  CreateParams,
  InviteParams,
  JoinParams,
  LeaveParams,
  MemberParams,
  StatusParams,
  ThreadCreateParams,
  TurnParams,
  TurnUpdateParams,
} from "./params.js";
import type { Owners } from "./principals.js";
import { type ConversationView, catchUpTurns } from "./queries.js";
import { beginState, type ConversationState, evolve, lastTime, type MembershipPeriod } from "./state.js";
import type { Actor, ConversationStatus, ParticipantIdentity, TurnStatus } from "./types.js";
import { canReadHistory } from "./visibility.js";

interface Asked {
  readonly actor: Actor;
}

/** The command may add members; their identities are looked up before it is submitted. */
interface Inviting extends Asked {
  readonly known: ReadonlyMap<string, ParticipantIdentity>;
  readonly reservations?: ReservationPlan;
}

/** What is known about ids without an owner that a command names. */
export interface ReservationPlan {
  /** For those that no caller has named before. */
  readonly own: ReadonlyMap<string, Reservation>;
  /** Reserved by other callers. */
  readonly foreign: ReadonlySet<string>;
}

export type ConversationCommand =
  | (Inviting & { readonly type: "create"; readonly id: string; readonly params: CreateParams })
  | (Asked & { readonly type: "close"; readonly params: CloseParams })
  | (Inviting & { readonly type: "join"; readonly params: JoinParams; readonly owners?: Owners })
  | (Asked & { readonly type: "leave"; readonly params: LeaveParams; readonly owners?: Owners })
  | (Inviting & { readonly type: "invite"; readonly params: InviteParams })
  | (Asked & {
      readonly type: "turn";
      readonly params: TurnParams;
      readonly reservations?: ReservationPlan;
    })
  | (Inviting & { readonly type: "intercept"; readonly message: Interception; readonly owners?: Owners })
  | (Asked & { readonly type: "create_thread"; readonly params: ThreadCreateParams })
  | (Asked & {
      readonly type: "keep_summary";
      readonly made: Pick<SummaryMade, "scope" | "upTo" | "summary">;
    })
  | (Asked & {
      readonly type: "change";
      readonly wanted: "active" | "paused" | "archived";
      readonly params: StatusParams;
    })
  | (Asked & { readonly type: "member"; readonly params: MemberParams; readonly owners?: Owners })
  | (Asked & { readonly type: "progress"; readonly params: TurnUpdateParams })
  /** Only the server issues these; no method of the protocol does. */
  | { readonly type: "set_status"; readonly status: ConversationStatus }
  | { readonly type: "set_turn_status"; readonly turnId: string; readonly status: TurnStatus };

export interface ConversationTypes<Work extends object> extends Types {
  readonly state: ConversationState;
  readonly entry: ConversationEntry;
  readonly command: ConversationCommand;
  readonly refusal: MapError;
  readonly summary: { readonly updatedAt: number };
  readonly order: never;
  readonly work: Work;
}

/** The actor of commands that the server issues. */
const SERVER = "system";

const NOBODY: ReadonlyMap<string, ParticipantIdentity> = new Map();

export function conversationAggregate<Work extends object>(
  rules: ConversationRules,
): Aggregate<ConversationTypes<Work>> {
  return {
    kind: "conversation",
    begin(first) {
      if (first.t !== "created") throw new Error("a conversation's journal begins with its creation");
      return beginState(first);
    },
    evolve,
    number: ({ number }) => number,
    decide(state, command, context) {
      try {
        if (command.type === "create") return createNew(state, command, context);
        if (state === undefined)
          throw new Error(`there is no conversation for the command '${command.type}'`);
        const entries = decide(state, command, contextOf(command, context, state), rules);
        for (const entry of entries) evolve(state, entry);
        return { ok: true, state, entries };
      } catch (error) {
        if (error instanceof MapError) return { ok: false, refusal: error };
        throw error;
      }
    },
    summary: (state) => ({ updatedAt: lastTime(state) }),
  };
}

export function conversationNotFound(conversationId: string): MapError {
  return new MapError("CONVERSATION_NOT_FOUND", undefined, { conversationId });
}

type Creation = Extract<ConversationCommand, { type: "create" }>;

function createNew(state: ConversationState | undefined, command: Creation, context: KernelMoment) {
  if (state !== undefined) throw new Error(`conversation ${command.id} was created twice`);
  const entries = decideCreate(command.id, command.actor, command.params, contextOf(command, context));
  const [created, ...others] = entries;
  const begun = beginState(created);
  for (const entry of others) evolve(begun, entry);
  return { ok: true, state: begun, entries } as const;
}

function decide(
  state: ConversationState,
  command: Exclude<ConversationCommand, Creation>,
  context: DecisionContext,
  rules: ConversationRules,
): readonly ConversationEntry[] {
  const { id, space } = state.header;
  if ("actor" in command && command.actor.space !== space) throw conversationNotFound(id);
  switch (command.type) {
    case "close":
      return decideClose(state, command.actor, command.params, context, rules);
    case "join": {
      const { actor, params } = command;
      const joined = decideJoin(state, actor, params, context, rules, command.owners);
      // If the catch-up is not allowed, neither is the join.
      if (params.catchUp !== undefined) assertCatchUp(state, actor, joined, params.catchUp);
      return [joined];
    }
    case "leave":
      return decideLeave(state, command.actor, command.params, context, command.owners);
    case "invite":
      return [decideInvite(state, command.actor, command.params, context)];
    case "turn":
      return [decideTurn(state, command.actor, command.params, context)];
    case "intercept":
      return decideInterception(state, command.actor, command.message, context, rules, command.owners);
    case "create_thread":
      return [decideThread(state, command.actor, command.params, context, rules)];
    case "keep_summary": {
      const { actor, made } = command;
      return [{ t: "summary", at: timeIn(state, context), by: actor.acting, ...made }];
    }
    case "change": {
      const { actor, wanted, params } = command;
      return [decideChange(state, actor, wanted, params.reason, context)];
    }
    case "member":
      return decideMember(state, command.actor, command.params, context, command.owners);
    case "progress":
      return [decideProgress(state, command.actor, command.params, context)];
    case "set_status":
      return [decideStatus(state, command.status, SERVER, context)];
    case "set_turn_status":
      return [decideTurnStatus(state, command.turnId, command.status, SERVER, context)];
    default:
      return command satisfies never;
  }
}

function contextOf(
  command: ConversationCommand,
  { at, id }: KernelMoment,
  state?: ConversationState,
): DecisionContext {
  const known = "known" in command ? command.known : NOBODY;
  const reservations = "reservations" in command ? command.reservations : undefined;
  return {
    now: at,
    id: (prefix) => `${prefix}-${id()}`,
    identify: (participant) => {
      const identity = known.get(participant);
      if (identity === undefined) throw new Error(`the identity of '${participant}' was not looked up`);
      return identity;
    },
    reservation: (participant) => {
      if (reservations?.foreign.has(participant) === true && !isNamed(state, participant)) {
        throw reservedByAnother(participant);
      }
      return reservations?.own.get(participant);
    },
  };
}

/** Whether a member has invited or addressed the id here before. */
function isNamed(state: ConversationState | undefined, id: string): boolean {
  return state?.participants.has(id) === true || state?.addressed.has(id) === true;
}

/** Another caller may claim the id, and would read what was meant for another. */
function reservedByAnother(id: string): MapError {
  const message = `the id ${id} is reserved by another caller; invite another id, or this one once it is registered`;
  return new MapError("AGENT_EXISTS", message, { agentId: id });
}

function assertCatchUp(
  state: ConversationState,
  actor: Actor,
  joined: Joined,
  catchUp: NonNullable<JoinParams["catchUp"]>,
): void {
  assertCapability(actor, "canViewHistory");
  const view = viewOfNewcomer(state, actor, joined);
  if (!canReadHistory(view.viewer)) throw denied('the caller\'s history access is "none"');
  catchUpTurns(view, catchUp);
}

/** What the new member sees after joining. */
function viewOfNewcomer(
  state: ConversationState,
  actor: Actor,
  { participant, at }: Joined,
): ConversationView {
  const period: MembershipPeriod = {
    joined: state.number + 1,
    joinedAt: at,
    role: participant.role,
    permissions: participant.permissions,
    own: true,
  };
  return {
    state,
    upTo: state.number,
    viewer: {
      kind: "member",
      memberships: [{ id: participant.id, period }],
      identities: actor.identities,
    },
  };
}

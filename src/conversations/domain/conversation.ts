/** A conversation as a journaled aggregate: the rules of this folder in the form that the journal kernel works with. */
import type { Aggregate, Moment as KernelMoment, Types } from "../../journal/aggregate.js";
import { assertCapability } from "./checks.js";
import {
  decideClose,
  decideCreate,
  decideInvite,
  decideJoin,
  decideLeave,
  decideStatus,
} from "./decide-members.js";
import {
  decideInterception,
  decideThread,
  decideTurn,
  decideTurnStatus,
  type Interception,
} from "./decide-turns.js";
import type { ConversationEntry, Joined, SummaryMade } from "./entries.js";
import { denied, MapError } from "./errors.js";
import { type DomainRules, type Moment, timeIn } from "./moment.js";
import type {
  CloseParams,
  CreateParams,
  InviteParams,
  JoinParams,
  LeaveParams,
  ThreadCreateParams,
  TurnParams,
} from "./params.js";
import { catchUpTurns, type View } from "./queries.js";
import { beginState, type ConversationState, evolve, lastTime, type Stint } from "./state.js";
import type { Caller, ConversationStatus, Identity, TurnStatus } from "./types.js";
import { mayAskForHistory } from "./visibility.js";

interface Asked {
  readonly caller: Caller;
}

/** Others may become members by it: what is known about them was looked up before. */
interface Inviting extends Asked {
  readonly known: ReadonlyMap<string, Identity>;
}

export type ConversationCommand =
  | (Inviting & { readonly type: "create"; readonly id: string; readonly params: CreateParams })
  | (Asked & { readonly type: "close"; readonly params: CloseParams })
  | (Inviting & { readonly type: "join"; readonly params: JoinParams })
  | (Asked & { readonly type: "leave"; readonly params: LeaveParams })
  | (Inviting & { readonly type: "invite"; readonly params: InviteParams })
  | (Asked & { readonly type: "turn"; readonly params: TurnParams })
  | (Inviting & { readonly type: "intercept"; readonly message: Interception })
  | (Asked & { readonly type: "create_thread"; readonly params: ThreadCreateParams })
  | (Asked & {
      readonly type: "keep_summary";
      readonly made: Pick<SummaryMade, "scope" | "upTo" | "summary">;
    })
  /** For the server itself: no wire method does these. */
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

/** The actor of what the server does by itself. */
const SERVER = "system";

const NOBODY: ReadonlyMap<string, Identity> = new Map();

export function conversationAggregate<Work extends object>(
  rules: DomainRules,
): Aggregate<ConversationTypes<Work>> {
  return {
    kind: "conversation",
    begin(first) {
      if (first.t !== "created") throw new Error("a conversation's journal begins with its creation");
      return beginState(first);
    },
    evolve,
    number: ({ number }) => number,
    decide(state, command, moment) {
      try {
        if (command.type === "create") return createNew(state, command, moment);
        if (state === undefined) throw new Error(`'${command.type}' was asked of no conversation`);
        const entries = decide(state, command, momentOf(command, moment), rules);
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

function createNew(state: ConversationState | undefined, command: Creation, moment: KernelMoment) {
  if (state !== undefined) throw new Error(`conversation ${command.id} was created twice`);
  const entries = decideCreate(command.id, command.caller, command.params, momentOf(command, moment));
  const [created, ...others] = entries;
  const begun = beginState(created);
  for (const entry of others) evolve(begun, entry);
  return { ok: true, state: begun, entries } as const;
}

function decide(
  state: ConversationState,
  command: Exclude<ConversationCommand, Creation>,
  moment: Moment,
  rules: DomainRules,
): readonly ConversationEntry[] {
  const { id, space } = state.header;
  if ("caller" in command && command.caller.space !== space) throw conversationNotFound(id);
  switch (command.type) {
    case "close":
      return [decideClose(state, command.caller, command.params.reason, moment, rules)];
    case "join": {
      const { caller, params } = command;
      const joined = decideJoin(state, caller, params, moment);
      // A catch-up that is refused refuses the join.
      if (params.catchUp !== undefined) assertCatchUp(state, caller, joined, params.catchUp);
      return [joined];
    }
    case "leave":
      return [decideLeave(state, command.caller, command.params, moment)];
    case "invite":
      return [decideInvite(state, command.caller, command.params, moment)];
    case "turn":
      return [decideTurn(state, command.caller, command.params, moment)];
    case "intercept":
      return decideInterception(state, command.caller, command.message, moment, rules);
    case "create_thread":
      return [decideThread(state, command.caller, command.params, moment, rules)];
    case "keep_summary": {
      const { caller, made } = command;
      return [{ t: "summary", at: timeIn(state, moment), by: caller.acting, ...made }];
    }
    case "set_status":
      return [decideStatus(state, command.status, SERVER, moment)];
    case "set_turn_status":
      return [decideTurnStatus(state, command.turnId, command.status, SERVER, moment)];
    default:
      return command satisfies never;
  }
}

function momentOf(command: ConversationCommand, { at, id }: KernelMoment): Moment {
  const known = "known" in command ? command.known : NOBODY;
  return {
    now: at,
    id: (prefix) => `${prefix}-${id()}`,
    identify: (participant) => {
      const identity = known.get(participant);
      if (identity === undefined) throw new Error(`it was not looked up who '${participant}' is`);
      return identity;
    },
  };
}

function assertCatchUp(
  state: ConversationState,
  caller: Caller,
  joined: Joined,
  catchUp: NonNullable<JoinParams["catchUp"]>,
): void {
  assertCapability(caller, "canViewHistory");
  const view = viewOfNewcomer(state, caller, joined);
  if (!mayAskForHistory(view.viewer)) throw denied('the caller\'s history access is "none"');
  catchUpTurns(view, catchUp);
}

/** What somebody will see who is about to join. */
function viewOfNewcomer(state: ConversationState, caller: Caller, { participant, at }: Joined): View {
  const stint: Stint = {
    joined: state.number + 1,
    joinedAt: at,
    role: participant.role,
    permissions: participant.permissions,
  };
  return {
    state,
    upTo: state.number,
    viewer: {
      kind: "member",
      memberships: [{ id: participant.id, stint }],
      identities: caller.identities,
    },
  };
}

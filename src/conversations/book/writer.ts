/** What changes conversations: each method has the domain decide, and answers when the decision is durable. */
import { assertCapability, requireReader, requireTurn } from "../domain/checks.js";
import {
  decideClose,
  decideCreate,
  decideInvite,
  decideJoin,
  decideLeave,
  decideStatus,
} from "../domain/decide-members.js";
import {
  decideInterception,
  decideThread,
  decideTurn,
  decideTurnStatus,
  type Interception,
} from "../domain/decide-turns.js";
import type { Joined } from "../domain/entries.js";
import { denied } from "../domain/errors.js";
import type { DomainRules } from "../domain/moment.js";
import type {
  CloseParams,
  CreateParams,
  InviteParams,
  JoinParams,
  LeaveParams,
  ThreadCreateParams,
  TurnParams,
} from "../domain/params.js";
import { catchUpTurns, type View } from "../domain/queries.js";
import { beginState, conversationAt, evolve, type Stint } from "../domain/state.js";
import type {
  Caller,
  Conversation,
  ConversationStatus,
  Participant,
  Thread,
  Turn,
  TurnStatus,
} from "../domain/types.js";
import { mayAskForHistory, viewerAt } from "../domain/visibility.js";
import { LiveConversation } from "./live.js";
import type { Shelf } from "./shelf.js";
import type { Summaries } from "./summaries.js";

export interface WriterParts {
  readonly shelf: Shelf;
  readonly summaries: Summaries;
  readonly rules: DomainRules;
  /** Whether a parent is a conversation that is kept elsewhere. Throws if the caller may not read it. */
  readonly isElsewhere?: (caller: Caller, id: string, turnId: string | undefined) => Promise<boolean>;
}

export interface Creation {
  readonly conversation: Conversation;
  readonly participant: Participant;
  readonly initialTurn?: Turn;
}

export interface Joining {
  readonly conversation: Conversation;
  readonly participant: Participant;
  readonly history?: readonly Turn[];
  readonly historyCursor?: string;
  readonly summary?: string;
}

/** The actor of what the server does by itself. */
const SERVER = "system";

export class ConversationWriter {
  readonly #parts: WriterParts;
  readonly #shelf: Shelf;

  constructor(parts: WriterParts) {
    this.#parts = parts;
    this.#shelf = parts.shelf;
  }

  async create(caller: Caller, params: CreateParams): Promise<Creation> {
    assertCapability(caller, "canCreate");
    if (params.parentConversationId !== undefined) {
      await this.#checkParent(caller, params.parentConversationId, params.parentTurnId);
    }
    const { entries } = decideCreate(caller, params, this.#shelf.moment(caller.space));
    const [created, ...others] = entries;
    const live = new LiveConversation(beginState(created), 0);
    for (const entry of others) evolve(live.state, entry);
    await this.#shelf.add(live, entries);
    const [founder] = others;
    if (founder?.t !== "joined") throw new Error("a conversation begins with its initiator");
    const turn = others.find((entry) => entry.t === "turn");
    return {
      conversation: conversationAt(live.state, entries.length),
      participant: founder.participant,
      ...(turn !== undefined && { initialTurn: turn.turn }),
    };
  }

  async close(caller: Caller, params: CloseParams): Promise<{ conversation: Conversation }> {
    const { live, last } = await this.#shelf.write(params.conversationId, caller, (state, moment) => [
      decideClose(state, caller, params.reason, moment, this.#parts.rules),
    ]);
    return { conversation: conversationAt(live.state, last) };
  }

  async join(caller: Caller, params: JoinParams): Promise<Joining> {
    const { catchUp, conversationId } = params;
    const { live, entries, last } = await this.#shelf.write(conversationId, caller, (state, moment) => {
      const joined = decideJoin(state, caller, params, moment);
      if (catchUp !== undefined) {
        // Asked before anything is written: a catch-up that is refused refuses the join.
        assertCapability(caller, "canViewHistory");
        const view = viewOfNewcomer(caller, state, joined);
        if (!mayAskForHistory(view.viewer)) throw denied('the caller\'s history access is "none"');
        catchUpTurns(view, catchUp);
      }
      return [joined];
    });
    const [joined] = entries;
    const result = { conversation: conversationAt(live.state, last), participant: joined.participant };
    if (catchUp === undefined) return result;
    const view: View = { state: live.state, viewer: viewerAt(live.state, caller, last), upTo: last };
    const { turns, nextCursor } = await this.#shelf.page(view, catchUpTurns(view, catchUp));
    return {
      ...result,
      history: turns,
      ...(nextCursor !== undefined && { historyCursor: nextCursor }),
      // The join is done: it does not wait for a model, nor can one fail it.
      ...(catchUp.includeSummary === true && { summary: await this.#parts.summaries.atHand(view) }),
    };
  }

  async leave(caller: Caller, params: LeaveParams): Promise<{ success: true; leftAt: number }> {
    const { entries } = await this.#shelf.write(params.conversationId, caller, (state, moment) => [
      decideLeave(state, caller, params, moment),
    ]);
    return { success: true, leftAt: entries[0].at };
  }

  async invite(caller: Caller, params: InviteParams): Promise<{ invited: true; participant: Participant }> {
    const { entries } = await this.#shelf.write(params.conversationId, caller, (state, moment) => [
      decideInvite(state, caller, params, moment),
    ]);
    return { invited: true, participant: entries[0].participant };
  }

  async turn(caller: Caller, params: TurnParams): Promise<{ turn: Turn }> {
    const { entries } = await this.#shelf.write(params.conversationId, caller, (state, moment) => [
      decideTurn(state, caller, params, moment),
    ]);
    return { turn: entries[0].turn };
  }

  /** MAP Mail, Turn Interception. */
  async intercept(caller: Caller, conversationId: string, message: Interception): Promise<Turn> {
    const { entries } = await this.#shelf.write(conversationId, caller, (state, moment) => {
      const [first, ...others] = decideInterception(state, caller, message, moment, this.#parts.rules);
      if (first === undefined) throw new Error("an interception records a turn");
      return [first, ...others];
    });
    const last = entries.at(-1);
    if (last?.t !== "turn") throw new Error("an interception ends with its turn");
    return last.turn;
  }

  async createThread(caller: Caller, params: ThreadCreateParams): Promise<{ thread: Thread }> {
    const { entries } = await this.#shelf.write(params.conversationId, caller, (state, moment) => [
      decideThread(state, caller, params, moment, this.#parts.rules),
    ]);
    const [{ thread, at }] = entries;
    return { thread: { ...thread, turnCount: 0, participantCount: 0, updatedAt: at } };
  }

  /** Decisions F7: for the server itself, not for callers. */
  async setStatus(id: string, status: ConversationStatus): Promise<void> {
    await this.#shelf.write(id, undefined, (state, moment) => [decideStatus(state, status, SERVER, moment)]);
  }

  async setTurnStatus(id: string, turnId: string, status: TurnStatus): Promise<void> {
    await this.#shelf.write(id, undefined, (state, moment) => [
      decideTurnStatus(state, turnId, status, SERVER, moment),
    ]);
  }

  async #checkParent(caller: Caller, id: string, turnId: string | undefined): Promise<void> {
    const elsewhere = this.#shelf.isLoaded(id) ? false : await this.#parts.isElsewhere?.(caller, id, turnId);
    if (elsewhere === true) return;
    const parent = await this.#shelf.open(id, caller);
    const viewer = requireReader(parent.state, caller, parent.committed);
    if (turnId !== undefined) requireTurn(parent.state, viewer, turnId, parent.committed, "history");
  }
}

/** What somebody will see who is about to join. */
function viewOfNewcomer(caller: Caller, state: LiveConversation["state"], { participant, at }: Joined): View {
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

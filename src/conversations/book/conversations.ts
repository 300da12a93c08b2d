/** All native conversations of a server. Knows nothing of connections. */
import { assertCapability, requireReader, requireTurn } from "../domain/checks.js";
import type { ConversationCommand } from "../domain/conversation.js";
import type { Interception } from "../domain/decide-turns.js";
import type { ConversationEntry } from "../domain/entries.js";
import { DEFAULT_RULES, type DomainRules } from "../domain/moment.js";
import type {
  CloseParams,
  CreateParams,
  GetParams,
  InviteParams,
  JoinParams,
  LeaveParams,
  ListParams,
  ReplayParams,
  SummaryParams,
  ThreadCreateParams,
  ThreadListParams,
  TurnParams,
  TurnsListParams,
} from "../domain/params.js";
import { catchUpTurns, type View } from "../domain/queries.js";
import { conversationAt } from "../domain/state.js";
import { extractiveSummariser, type Summariser } from "../domain/summary.js";
import type {
  Caller,
  Conversation,
  ConversationStatus,
  Identity,
  Participant,
  Thread,
  Turn,
  TurnStatus,
} from "../domain/types.js";
import { viewerAt } from "../domain/visibility.js";
import type { EventLog } from "../log/event-log.js";
import type { ConversationIndex } from "../ports.js";
import type { Book } from "./book.js";
import { readPage } from "./contents.js";
import { conversationSource } from "./events.js";
import { ConversationKernel, type ConversationKernelParts, type Written } from "./kernel.js";
import { ConversationReader } from "./reader.js";
import { Summaries } from "./summaries.js";

export interface ConversationsParts extends Omit<ConversationKernelParts, "rules"> {
  readonly index: ConversationIndex;
  readonly log: EventLog;
  /** What is known about the bearer of an id. */
  readonly identify: (id: string, space: string) => Identity;
  readonly rules?: Partial<DomainRules>;
  readonly summariser?: Summariser;
  /** Whether a parent is a conversation that is kept elsewhere. Throws if the caller may not read it. */
  readonly isElsewhere?: (caller: Caller, id: string, turnId: string | undefined) => Promise<boolean>;
}

interface Creation {
  readonly conversation: Conversation;
  readonly participant: Participant;
  readonly initialTurn?: Turn;
}

interface Joining {
  readonly conversation: Conversation;
  readonly participant: Participant;
  readonly history?: readonly Turn[];
  readonly historyCursor?: string;
  readonly summary?: string;
}

type Kind = ConversationEntry["t"];
type EntryOf<T extends Kind> = Extract<ConversationEntry, { t: T }>;

export class Conversations implements Book {
  readonly #parts: ConversationsParts;
  readonly #kernel: ConversationKernel;
  readonly #reader: ConversationReader;
  readonly #summaries: Summaries;

  constructor(parts: ConversationsParts) {
    const { store, index, log, summariser = extractiveSummariser } = parts;
    this.#parts = parts;
    this.#kernel = new ConversationKernel({ ...parts, rules: { ...DEFAULT_RULES, ...parts.rules } });
    this.#reader = new ConversationReader(this.#kernel, store, index);
    this.#summaries = new Summaries(this.#kernel, store, summariser);
    log.addSource(conversationSource(this.#kernel));
  }

  // --- writing: each is decided by the domain, and answered when the decision is durable ------------------------

  async create(caller: Caller, params: CreateParams): Promise<Creation> {
    assertCapability(caller, "canCreate");
    if (params.parentConversationId !== undefined) {
      await this.#checkParent(caller, params.parentConversationId, params.parentTurnId);
    }
    const members = params.initialParticipants?.map(({ id }) => id) ?? [];
    const { state, entries, last } = await this.#kernel.create({
      type: "create",
      id: `conv-${this.#parts.ids.ordered()}`,
      caller,
      params,
      known: this.#known(caller, members),
    });
    const turn = entries.find((entry) => entry.t === "turn");
    return {
      conversation: conversationAt(state, last),
      participant: entryOf(entries[1], "joined").participant,
      ...(turn !== undefined && { initialTurn: turn.turn }),
    };
  }

  async close(caller: Caller, params: CloseParams): Promise<{ conversation: Conversation }> {
    const { state, last } = await this.#kernel.submit(params.conversationId, {
      type: "close",
      caller,
      params,
    });
    return { conversation: conversationAt(state, last) };
  }

  async join(caller: Caller, params: JoinParams): Promise<Joining> {
    const { catchUp, conversationId } = params;
    const known = this.#known(caller);
    const written = await this.#ask(conversationId, { type: "join", caller, params, known }, "joined");
    const { state, last, entry } = written;
    const result = { conversation: conversationAt(state, last), participant: entry.participant };
    if (catchUp === undefined) return result;
    const view: View = { state, viewer: viewerAt(state, caller, last), upTo: last };
    const { turns, nextCursor } = await readPage(this.#parts.store, view, catchUpTurns(view, catchUp));
    return {
      ...result,
      history: turns,
      ...(nextCursor !== undefined && { historyCursor: nextCursor }),
      // The join is done: it does not wait for a model, nor can one fail it.
      ...(catchUp.includeSummary === true && { summary: await this.#summaries.atHand(view) }),
    };
  }

  async leave(caller: Caller, params: LeaveParams): Promise<{ success: true; leftAt: number }> {
    const { entry } = await this.#ask(params.conversationId, { type: "leave", caller, params }, "left");
    return { success: true, leftAt: entry.at };
  }

  async invite(caller: Caller, params: InviteParams): Promise<{ invited: true; participant: Participant }> {
    const known = this.#known(caller, [params.participant.id]);
    const command = { type: "invite", caller, params, known } as const;
    const { entry } = await this.#ask(params.conversationId, command, "joined");
    return { invited: true, participant: entry.participant };
  }

  async turn(caller: Caller, params: TurnParams): Promise<{ turn: Turn }> {
    const { entry } = await this.#ask(params.conversationId, { type: "turn", caller, params }, "turn");
    return { turn: entry.turn };
  }

  /** MAP Mail, Turn Interception. */
  async intercept(caller: Caller, conversationId: string, message: Interception): Promise<Turn> {
    const known = this.#known(caller, message.recipients);
    const command = { type: "intercept", caller, message, known } as const;
    return (await this.#ask(conversationId, command, "turn")).entry.turn;
  }

  async createThread(caller: Caller, params: ThreadCreateParams): Promise<{ thread: Thread }> {
    const command = { type: "create_thread", caller, params } as const;
    const { thread, at } = (await this.#ask(params.conversationId, command, "thread")).entry;
    return { thread: { ...thread, turnCount: 0, participantCount: 0, updatedAt: at } };
  }

  /** For the server itself, not for callers. */
  async setStatus(id: string, status: ConversationStatus): Promise<void> {
    await this.#kernel.submit(id, { type: "set_status", status });
  }

  async setTurnStatus(id: string, turnId: string, status: TurnStatus): Promise<void> {
    await this.#kernel.submit(id, { type: "set_turn_status", turnId, status });
  }

  // --- reading --------------------------------------------------------------------------------------------------

  get(caller: Caller, params: GetParams) {
    return this.#reader.get(caller, params);
  }
  list(caller: Caller, params: ListParams) {
    return this.#reader.list(caller, params);
  }
  listTurns(caller: Caller, params: TurnsListParams) {
    return this.#reader.listTurns(caller, params);
  }
  replay(caller: Caller, params: ReplayParams) {
    return this.#reader.replay(caller, params);
  }
  listThreads(caller: Caller, params: ThreadListParams) {
    return this.#reader.listThreads(caller, params);
  }
  summary(caller: Caller, params: SummaryParams) {
    return this.#summaries.summary(caller, params);
  }

  /** Whether the id is known, without asking the store, to be that of a conversation here. */
  isLoaded(id: string): boolean {
    return this.#kernel.has(id);
  }

  /** In memory now; for those who watch the process. */
  get loaded(): number {
    return this.#kernel.size;
  }

  /** Nothing is taken any more. What was taken becomes durable as long as the store is open. */
  stop(): void {
    this.#kernel.stop();
  }

  // --- inside ---------------------------------------------------------------------------------------------------

  /** For a command whose last entry is of a certain kind. */
  async #ask<T extends Kind>(
    id: string,
    command: Exclude<ConversationCommand, { type: "create" }>,
    kind: T,
  ): Promise<Written & { readonly entry: EntryOf<T> }> {
    const written = await this.#kernel.submit(id, command);
    return { ...written, entry: entryOf(written.entries.at(-1), kind) };
  }

  #known(caller: Caller, others: readonly string[] = []): ReadonlyMap<string, Identity> {
    const { identify } = this.#parts;
    return new Map([caller.acting, ...others].map((id) => [id, identify(id, caller.space)]));
  }

  async #checkParent(caller: Caller, id: string, turnId: string | undefined): Promise<void> {
    const elsewhere = this.isLoaded(id) ? false : await this.#parts.isElsewhere?.(caller, id, turnId);
    if (elsewhere === true) return;
    const { state, viewer, upTo } = await this.#kernel.view(caller, id, (parent, number) =>
      requireReader(parent, caller, number),
    );
    if (turnId !== undefined) requireTurn(state, viewer, turnId, upTo, "history");
  }
}

function entryOf<T extends Kind>(entry: ConversationEntry | undefined, kind: T): EntryOf<T> {
  if (entry === undefined || !isOf(entry, kind)) throw new Error(`no '${kind}' was decided`);
  return entry;
}

function isOf<T extends Kind>(entry: ConversationEntry, kind: T): entry is EntryOf<T> {
  return entry.t === kind;
}

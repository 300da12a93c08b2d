/** All native conversations of a server: commands, queries and summaries. */

import { defaultsOf } from "../../base/index.js";
import type { EventLog } from "../events/event-log.js";
import type { ConversationReads, IdOwner, ListedConversation } from "../ports.js";
import { assertCapability, requireReader, requireTurn } from "../rules/checks.js";
import type { ConversationCommand } from "../rules/conversation.js";
import type { Interception } from "../rules/decide-turns.js";
import type { ConversationEntry, Reservation } from "../rules/entries.js";
import { denied, MapError } from "../rules/errors.js";
import type {
  CloseParams,
  CreateParams,
  GetParams,
  InviteParams,
  JoinParams,
  LeaveParams,
  ListParams,
  MemberParams,
  ReplayParams,
  StatusParams,
  SummaryParams,
  ThreadCreateParams,
  ThreadListParams,
  TurnParams,
  TurnsListParams,
  TurnUpdateParams,
} from "../rules/params.js";
import { type Owners, unresolvedIds } from "../rules/principals.js";
import { type ConversationView, catchUpTurns } from "../rules/queries.js";
import { conversationAt, participantAt } from "../rules/state.js";
import { extractiveSummarizer, type Summarizer } from "../rules/summary.js";
import type {
  Actor,
  Conversation,
  ConversationStatus,
  Participant,
  ParticipantIdentity,
  Thread,
  Turn,
  TurnStatus,
  Visibility,
} from "../rules/types.js";
import { isInReach, viewerAt } from "../rules/visibility.js";
import { type ConversationRules, conversationSettings } from "../settings.js";
import { readPage, readTurns } from "./contents.js";
import { type Invitations, NO_INVITATIONS, newInvitations } from "./invitations.js";
import { conversationJournalEvents } from "./journal-events.js";
import { ConversationKernel, type ConversationKernelParts, type Written } from "./kernel.js";
import type { ConversationOperations } from "./operations.js";
import { ConversationReader } from "./reader.js";
import type { ReadableConversation } from "./search.js";
import { Summaries } from "./summaries.js";

export interface ConversationServiceParts extends Omit<ConversationKernelParts, "rules"> {
  readonly index: ConversationReads;
  readonly log: EventLog;
  /** Looks up the participant behind an id. */
  readonly identify: (id: string, space: string) => ParticipantIdentity;
  /** Owners of ids, including those that are only reserved. Absent: the id has no owner. */
  readonly owners?: (space: string, ids: readonly string[]) => Promise<ReadonlyMap<string, IdOwner>>;
  readonly rules?: Partial<ConversationRules>;
  readonly summarizer?: Summarizer;
  /** Whether the id belongs to another kind of conversation. Throws if the actor may not read it. */
  readonly isElsewhere?: (actor: Actor, id: string, turnId: string | undefined) => Promise<boolean>;
}

interface Creation extends Invited {
  readonly conversation: Conversation;
  readonly participant: Participant;
  readonly initialTurn?: Turn;
}

/** Invitations of ids without an owner, for the inviter to pass on. */
interface Invited {
  readonly _meta?: { readonly invitations: Readonly<Record<string, string>> };
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

export class ConversationService implements ConversationOperations {
  readonly #parts: ConversationServiceParts;
  readonly #rules: ConversationRules;
  readonly #kernel: ConversationKernel;
  readonly #reader: ConversationReader;
  readonly #summaries: Summaries;
  /** By conversation: settled when the last command that is being prepared has been submitted. */
  readonly #preparing = new Map<string, Promise<void>>();

  constructor(parts: ConversationServiceParts) {
    const { store, index, log, summarizer = extractiveSummarizer } = parts;
    this.#parts = parts;
    this.#rules = { ...defaultsOf(conversationSettings), ...parts.rules };
    this.#kernel = new ConversationKernel({ ...parts, rules: this.#rules });
    this.#reader = new ConversationReader(this.#kernel, store, index);
    this.#summaries = new Summaries(this.#kernel, store, summarizer);
    log.addSource(conversationJournalEvents(this.#kernel));
  }

  // --- commands: decided by the rules, answered when the decision is durable
  // ------------------------------------

  async create(actor: Actor, params: CreateParams): Promise<Creation> {
    assertCapability(actor, "canCreate");
    if (params.parentConversationId !== undefined) {
      await this.#checkParent(actor, params.parentConversationId, params.parentTurnId);
    }
    const members = params.initialParticipants?.map(({ id }) => id) ?? [];
    const named = [...members, ...idsIn(params.initialTurn?.visibility)];
    const { known, reservations, secrets } = await this.#named(actor, named);
    const { state, entries, last } = await this.#kernel.create({
      type: "create",
      id: `conv-${this.#parts.ids.ordered()}`,
      actor,
      params,
      known,
      reservations,
    });
    const turn = entries.find((entry) => entry.t === "turn");
    return {
      conversation: conversationAt(state, last),
      participant: entryOf(entries[1], "joined").participant,
      ...(turn !== undefined && { initialTurn: turn.turn }),
      ...invited(secrets),
    };
  }

  async close(actor: Actor, params: CloseParams): Promise<{ conversation: Conversation }> {
    const { state, last } = await this.#kernel.submit(params.conversationId, {
      type: "close",
      actor,
      params,
    });
    return { conversation: conversationAt(state, last) };
  }

  async join(actor: Actor, params: JoinParams): Promise<Joining> {
    const { catchUp, conversationId } = params;
    const known = this.#known(actor);
    const written = await this.#ask(conversationId, "joined", async () => ({
      command: { type: "join", actor, params, known, owners: await this.#ownersIn(conversationId, actor) },
    }));
    const { state, last, entry } = written;
    const result = { conversation: conversationAt(state, last), participant: entry.participant };
    if (catchUp === undefined) return result;
    const view: ConversationView = { state, viewer: viewerAt(state, actor, last), upTo: last };
    const { turns, nextCursor } = await readPage(this.#parts.store, view, catchUpTurns(view, catchUp));
    return {
      ...result,
      history: turns,
      ...(nextCursor !== undefined && { historyCursor: nextCursor }),
      // The join is committed: it must neither wait for a model nor fail because of one.
      ...(catchUp.includeSummary === true && { summary: await this.#summaries.immediate(view) }),
    };
  }

  async leave(actor: Actor, params: LeaveParams): Promise<{ success: true; leftAt: number }> {
    const { conversationId, participantId } = params;
    const command = { type: "leave", actor, params } as const;
    const { entry } = await this.#ask(
      conversationId,
      "left",
      participantId !== undefined
        ? async () => ({ command: { ...command, owners: await this.#ownersIn(conversationId, actor) } })
        : { command },
    );
    return { success: true, leftAt: entry.at };
  }

  async invite(
    actor: Actor,
    params: InviteParams,
  ): Promise<{ invited: true; participant: Participant } & Invited> {
    const { entry, secrets } = await this.#ask(params.conversationId, "joined", async () => {
      const { known, reservations, secrets } = await this.#named(actor, [params.participant.id]);
      return { command: { type: "invite", actor, params, known, reservations }, secrets };
    });
    return { invited: true, participant: entry.participant, ...invited(secrets) };
  }

  async turn(actor: Actor, params: TurnParams): Promise<{ turn: Turn } & Invited> {
    const command = { type: "turn", actor, params } as const;
    const ids = idsIn(params.visibility);
    if (ids.length === 0) {
      return { turn: (await this.#ask(params.conversationId, "turn", { command })).entry.turn };
    }
    const { entry, secrets } = await this.#ask(params.conversationId, "turn", async () => {
      const { reservations, secrets } = await this.#named(actor, ids);
      return { command: { ...command, reservations }, secrets };
    });
    return { turn: entry.turn, ...invited(secrets, entry.reserves) };
  }

  /** Records a message that was sent with `map/send`. */
  async intercept(actor: Actor, conversationId: string, message: Interception): Promise<Turn> {
    const known = this.#known(actor, message.recipients);
    const command = { type: "intercept", actor, message, known } as const;
    const ids = idsIn(message.visibility);
    // Members are not enrolled, so their owners do not matter.
    const enrollsNobody = this.#kernel.peek(conversationId, ({ participants }) =>
      message.recipients.every((id) => participants.has(id)),
    );
    const { entry } = await this.#ask(
      conversationId,
      "turn",
      ids.length === 0 && enrollsNobody === true
        ? { command }
        : async () => {
            const { reservations } = await this.#named(actor, ids);
            return {
              command: { ...command, reservations, owners: await this.#ownersIn(conversationId, actor) },
            };
          },
    );
    return entry.turn;
  }

  async createThread(actor: Actor, params: ThreadCreateParams): Promise<{ thread: Thread }> {
    const command = { type: "create_thread", actor, params } as const;
    const { thread, at } = (await this.#ask(params.conversationId, "thread", { command })).entry;
    return { thread: { ...thread, turnCount: 0, participantCount: 0, updatedAt: at } };
  }

  /** Pauses the conversation, makes it active again, or archives it. */
  async change(
    actor: Actor,
    wanted: "active" | "paused" | "archived",
    params: StatusParams,
  ): Promise<{ conversation: Conversation }> {
    const command = { type: "change", actor, wanted, params } as const;
    const { state, last } = await this.#ask(params.conversationId, "status", { command });
    return { conversation: conversationAt(state, last) };
  }

  /** Changes the role and the permissions of a member. */
  async changeMember(actor: Actor, params: MemberParams): Promise<{ participant: Participant }> {
    const { conversationId } = params;
    const { state, last } = await this.#ask(conversationId, "member", async () => ({
      command: { type: "member", actor, params, owners: await this.#ownersIn(conversationId, actor) },
    }));
    const record = state.participants.get(params.participantId);
    const participant = record === undefined ? undefined : participantAt(record, last);
    if (participant === undefined) throw new Error(`${params.participantId} has left its own change`);
    return { participant };
  }

  async updateTurn(actor: Actor, params: TurnUpdateParams): Promise<{ turnId: string; status: TurnStatus }> {
    const command = { type: "progress", actor, params } as const;
    const { turnId, status } = (await this.#ask(params.conversationId, "turn_updated", { command })).entry;
    return { turnId, status };
  }

  /** Deletes a conversation with all of its turns; allowed for its initiator and for admins. */
  async delete(actor: Actor, { conversationId }: StatusParams): Promise<{ deleted: true }> {
    const viewers = await this.#kernel.view(actor, conversationId, (state, number) => {
      const viewer = requireReader(state, actor, number);
      const initiator =
        viewer.kind === "member" && viewer.memberships.some(({ period }) => period.role === "initiator");
      if (!initiator && actor.instance?.role !== "admin") {
        throw denied("only the initiator and admins can delete a conversation");
      }
      return viewer;
    });
    const { state, upTo } = viewers;
    if (!(await this.#kernel.remove(conversationId))) {
      throw new MapError("EXHAUSTED", "the conversation is being written to; retry");
    }
    this.#parts.log.emit({
      type: "mailroom.conversation.deleted",
      source: actor.acting,
      data: { conversationId },
      isFor: (other) => isInReach(state, other) && viewerAt(state, other, upTo).kind !== "outsider",
    });
    return { deleted: true };
  }

  /** Archives and deletes conversations that were closed long enough ago, as the settings say. */
  async applyRetention(): Promise<{ archived: number; deleted: number }> {
    const { archiveAfter, deleteAfter } = this.#rules;
    const counts = { archived: 0, deleted: 0 };
    for (const row of await this.#endedFor(deleteAfter, ["completed", "failed", "archived"])) {
      if (await this.#kernel.remove(row.id)) counts.deleted++;
    }
    for (const row of await this.#endedFor(archiveAfter, ["completed", "failed"])) {
      await this.setStatus(row.id, "archived");
      counts.archived++;
    }
    return counts;
  }

  async #endedFor(
    time: number,
    statuses: readonly ConversationStatus[],
  ): Promise<readonly ListedConversation[]> {
    if (time === 0) return [];
    const closedBefore = this.#parts.clock.now() - time;
    return this.#parts.index.list({ closedBefore, statuses, limit: RETENTION_BATCH });
  }

  /** For the server itself; no method of the protocol calls it. */
  async setStatus(id: string, status: ConversationStatus): Promise<void> {
    await this.#kernel.submit(id, { type: "set_status", status });
  }

  async setTurnStatus(id: string, turnId: string, status: TurnStatus): Promise<void> {
    await this.#kernel.submit(id, { type: "set_turn_status", turnId, status });
  }

  // --- reading --------------------------------------------------------------------------------------------------

  get(actor: Actor, params: GetParams) {
    return this.#reader.get(actor, params);
  }
  list(actor: Actor, params: ListParams) {
    return this.#reader.list(actor, params);
  }
  listTurns(actor: Actor, params: TurnsListParams) {
    return this.#reader.listTurns(actor, params);
  }
  replay(actor: Actor, params: ReplayParams) {
    return this.#reader.replay(actor, params);
  }
  listThreads(actor: Actor, params: ThreadListParams) {
    return this.#reader.listThreads(actor, params);
  }
  summary(actor: Actor, params: SummaryParams) {
    return this.#summaries.summary(actor, params);
  }

  async readable(actor: Actor, conversationId: string): Promise<ReadableConversation> {
    const view = await this.#kernel.history(actor, conversationId);
    return { view, read: (records, most) => readTurns(this.#parts.store, view, records, most) };
  }

  /** Whether the conversation is in memory. False does not mean that it does not exist. */
  isLoaded(id: string): boolean {
    return this.#kernel.has(id);
  }

  /** The number of conversations in memory. */
  get loaded(): number {
    return this.#kernel.size;
  }

  /** Stops accepting commands. Accepted commands still become durable while the store is open. */
  stop(): void {
    this.#kernel.stop();
  }

  // --- inside ---------------------------------------------------------------------------------------------------

  /**
   * Submits a command whose last entry is of a known kind. If it has to be prepared, later commands of the conversation
   * wait: clients send several requests at once and rely on their order.
   */
  async #ask<T extends Kind>(
    id: string,
    kind: T,
    asked: Prepared | (() => Promise<Prepared>),
  ): Promise<Written & { readonly entry: EntryOf<T>; readonly secrets: ReadonlyMap<string, string> }> {
    const before = this.#preparing.get(id);
    if (before === undefined && typeof asked !== "function") return this.#submit(id, kind, asked);
    const submitted = (before ?? Promise.resolve()).then(async () => {
      const prepared = typeof asked === "function" ? await asked() : asked;
      return { result: this.#submit(id, kind, prepared) };
    });
    const gate = submitted.then(
      () => {},
      () => {},
    );
    this.#preparing.set(id, gate);
    try {
      return await (await submitted).result;
    } finally {
      if (this.#preparing.get(id) === gate) this.#preparing.delete(id);
    }
  }

  async #submit<T extends Kind>(id: string, kind: T, { command, secrets = NO_SECRETS }: Prepared) {
    const written = await this.#kernel.submit(id, command);
    return { ...written, secrets, entry: entryOf(written.entries.at(-1), kind) };
  }

  #known(actor: Actor, others: readonly string[] = []): ReadonlyMap<string, ParticipantIdentity> {
    const { identify } = this.#parts;
    const { acting, principal, space } = actor;
    const own = { ...identify(acting, space), ...(principal !== undefined && { principal }) };
    return new Map([...others.map((id) => [id, identify(id, space)] as const), [acting, own]]);
  }

  /** What is known about ids that the actor names, with invitations for those without an owner. */
  async #named(
    actor: Actor,
    ids: readonly string[],
  ): Promise<Invitations & { readonly known: ReadonlyMap<string, ParticipantIdentity> }> {
    const known = new Map(this.#known(actor, ids));
    if (actor.principal === undefined) return { known, ...NO_INVITATIONS };
    const owners = (await this.#parts.owners?.(actor.space, ids)) ?? new Map<string, IdOwner>();
    const foreign = new Set<string>();
    for (const [id, { principal, reserved }] of owners) {
      const identity = known.get(id);
      if (reserved && principal !== actor.principal) foreign.add(id);
      if (identity !== undefined && !reserved) known.set(id, { ...identity, principal });
    }
    const free = ids.filter((id) => !owners.has(id) && known.get(id)?.principal === undefined);
    return { known, ...newInvitations(actor.principal, free, foreign) };
  }

  /** Owners of the conversation's participants, as far as its journal does not name them. */
  async #ownersIn(conversationId: string, actor: Actor): Promise<Owners> {
    const { owners } = this.#parts;
    if (owners === undefined || actor.principal === undefined) return NOBODY;
    const ids = (await this.#kernel.read(conversationId, unresolvedIds)) ?? [];
    if (ids.length === 0) return NOBODY;
    const found = [...(await owners(actor.space, ids))].filter(([, { reserved }]) => !reserved);
    return new Map(found.map(([id, { principal }]) => [id, principal]));
  }

  async #checkParent(actor: Actor, id: string, turnId: string | undefined): Promise<void> {
    const elsewhere = this.isLoaded(id) ? false : await this.#parts.isElsewhere?.(actor, id, turnId);
    if (elsewhere === true) return;
    const { state, viewer, upTo } = await this.#kernel.view(actor, id, (parent, number) =>
      requireReader(parent, actor, number),
    );
    if (turnId !== undefined) requireTurn(state, viewer, turnId, upTo, "history");
  }
}

/** Conversations that one sweep archives or deletes. */
const RETENTION_BATCH = 1000;

const NOBODY: Owners = new Map();
const NO_SECRETS: ReadonlyMap<string, string> = new Map();

interface Prepared {
  readonly command: Exclude<ConversationCommand, { type: "create" }>;
  readonly secrets?: ReadonlyMap<string, string>;
}

function idsIn(visibility: Visibility | undefined): readonly string[] {
  return visibility?.type === "participants" ? visibility.ids : [];
}

/** Only those of `reserved`, if it is given: members need no invitation. */
function invited(secrets: ReadonlyMap<string, string>, reserved?: readonly Reservation[]): Invited {
  const ids = reserved === undefined ? undefined : new Set(reserved.map(({ id }) => id));
  const invitations = [...secrets].filter(([id]) => ids?.has(id) ?? true);
  return invitations.length === 0 ? {} : { _meta: { invitations: Object.fromEntries(invitations) } };
}

function entryOf<T extends Kind>(entry: ConversationEntry | undefined, kind: T): EntryOf<T> {
  if (entry === undefined || !isOf(entry, kind)) throw new Error(`the decision has no '${kind}' entry`);
  return entry;
}

function isOf<T extends Kind>(entry: ConversationEntry, kind: T): entry is EntryOf<T> {
  return entry.t === kind;
}

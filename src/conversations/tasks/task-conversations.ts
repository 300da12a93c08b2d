/** The `mail/*` methods on conversations of tasks: read from the journal, written through the engine (decision F4). */

import { setImmediate as yieldToOthers } from "node:timers/promises";
import type { Clock } from "../../base/index.js";
import { isPublicError, isRecord } from "../../base/index.js";
import { type Runtime, readDecisions, type Store, type TaskRow } from "../../engine/index.js";
import type { AgentToolCall } from "../../mail/index.js";
import { assertCapability, requireTurn } from "../rules/checks.js";
import { toPlainText } from "../rules/content.js";
import { denied, fromMailroomError, MapError } from "../rules/errors.js";
import {
  type CloseParams,
  type GetParams,
  type ListParams,
  MAX_PAGE_BYTES,
  type ReplayParams,
  type SummaryParams,
  type ThreadListParams,
  type TurnParams,
  type TurnsListParams,
} from "../rules/params.js";
import {
  type ConversationView,
  listTurns,
  participantsOf,
  recentTurns,
  replayTurns,
  statsOf,
  type ThreadPage,
  type TurnPage,
} from "../rules/queries.js";
import { activePeriod, conversationAt } from "../rules/state.js";
import { extractiveSummarizer, type Summarizer } from "../rules/summary.js";
import type { Actor, Conversation, Turn } from "../rules/types.js";
import { type TurnList, turnList } from "../service/contents.js";
import type { ConversationOperations } from "../service/operations.js";
import { type ConversationDetails, TRUNCATED } from "../service/reader.js";
import type { ReadableConversation } from "../service/search.js";
import type { SummaryResult } from "../service/summary-range.js";
import { APPROVAL, keyOfConversation, openCall, ownerIdOf, statusOfTask, typeOfTask } from "./derive.js";
import { TaskJournalEvents } from "./journal-events.js";
import { type TaskConversation, TaskProjection } from "./projection.js";
import { TaskSummaries } from "./summaries.js";
import { ownsTask, viewerOfTask } from "./viewer.js";

export interface TaskConversationsParts {
  readonly store: Store;
  readonly runtime: Pick<Runtime, "post" | "cancel" | "answerBreakpoint" | "answerApprovals">;
  readonly clock: Pick<Clock, "now">;
  readonly summarizer?: Summarizer;
  /** Without it, only owners answer. */
  readonly answers?: AnswersForOthers;
}

type Principal = NonNullable<Actor["instance"]>;

/** A task of another owner that waits for a person whom the owner named. */
interface WaitingTask {
  readonly key: string;
  readonly calls: readonly { readonly kind: "breakpoint" | "approval"; readonly call: AgentToolCall }[];
}

/** What a principal may answer in tasks of other owners. */
export interface AnswersForOthers {
  list(
    by: Principal,
    page: { readonly limit: number; readonly cursor?: string; readonly order: "asc" | "desc" },
  ): Promise<{ readonly approvals: readonly WaitingTask[]; readonly nextCursor?: string }>;
  find(by: Principal, key: string): Promise<WaitingTask | undefined>;
  decide(by: Principal, key: string, decisions: unknown): Promise<{ readonly number: number }>;
  answer(by: Principal, key: string, text: string): Promise<{ readonly number: number }>;
  /** An admin cancels any task. */
  cancel(by: Principal, key: string): Promise<void>;
}

export interface ListPage {
  readonly after: string | undefined;
  readonly limit: number;
  readonly order: "asc" | "desc";
}

interface Opened {
  readonly row: TaskRow;
  readonly conversation: TaskConversation;
  readonly view: ConversationView;
}

/** Rows per read when tasks are listed. */
const PAGE = 100;
/** Tasks processed before yielding to other work: each may have to be read from its journal. */
const AT_ONCE = 10;

export class TaskConversations implements ConversationOperations {
  readonly source: TaskJournalEvents;
  readonly #parts: TaskConversationsParts;
  readonly #conversations: TaskProjection;
  readonly #summaries: TaskSummaries;

  constructor(parts: TaskConversationsParts) {
    this.#parts = parts;
    this.#conversations = new TaskProjection(parts.store);
    this.source = new TaskJournalEvents(this.#conversations);
    this.#summaries = new TaskSummaries(
      this.#conversations,
      parts.summarizer ?? extractiveSummarizer,
      parts.clock,
    );
  }

  /** The journal of the task behind a conversation id, if there is one. */
  async journalOf(conversationId: string): Promise<string | undefined> {
    const key = keyOfConversation(conversationId);
    return key === undefined ? undefined : (await this.#parts.store.tasks.byKey(key))?.key;
  }

  /**
   * Whether the id is a task's conversation that the actor may name as a parent.
   * @throws MapError CONVERSATION_NOT_FOUND, TURN_NOT_FOUND
   */
  async canRefer(actor: Actor, conversationId: string, turnId: string | undefined): Promise<boolean> {
    if ((await this.journalOf(conversationId)) === undefined) return false;
    const { view } = await this.#open(actor, conversationId);
    if (turnId !== undefined) requireTurn(view.state, view.viewer, turnId, view.upTo, "history");
    return true;
  }

  // --- reading --------------------------------------------------------------------------------------------------

  async get(actor: Actor, { conversationId, include = {} }: GetParams): Promise<ConversationDetails> {
    const waiting =
      actor.instance?.role === "user" ? await this.#waitingFor(actor, conversationId) : undefined;
    if (waiting !== undefined) return { conversation: waiting };
    const opened = await this.#open(actor, conversationId);
    assertCapability(actor, "canViewHistory", "canJoin");
    const { conversation, view } = opened;
    const readable = actor.capabilities.canViewHistory;
    const recent =
      readable && include.recentTurns !== undefined ? recentTurns(view, include.recentTurns) : [];
    const turns = await this.#conversations.contents(conversation, recent, MAX_PAGE_BYTES);
    return {
      conversation: toConversation(opened),
      ...(include.participants === true && participantsOf(view, include.participantsAfter)),
      ...(include.threads === true && { threads: [] }),
      ...(include.stats === true && { stats: statsOf(view) }),
      ...(include.recentTurns !== undefined && { recentTurns: turns }),
      ...(turns.length < recent.length && TRUNCATED),
    };
  }

  /**
   * Up to `limit` conversations of the actor's tasks, or of all tasks for an admin, in the order of ids or the reverse,
   * and the newest tasks of others that wait for the actor.
   */
  async list(
    actor: Actor,
    filter: NonNullable<ListParams["filter"]>,
    page: ListPage,
  ): Promise<Conversation[]> {
    const { instance } = actor;
    // Task conversations have no parent.
    if (instance === undefined || filter.parentConversationId !== undefined) return [];
    const found = await this.#listSeen(actor, instance, filter, page);
    if (instance.role === "admin") return found;
    const sign = page.order === "asc" ? 1 : -1;
    found.push(...(await this.#listWaiting(instance, filter, page)));
    return found.sort((a, b) => (a.id < b.id ? -sign : sign)).slice(0, page.limit);
  }

  /** Tasks of other owners that wait for the caller. */
  async #listWaiting(
    instance: Principal,
    filter: NonNullable<ListParams["filter"]>,
    { after, limit, order }: ListPage,
  ): Promise<Conversation[]> {
    const { answers } = this.#parts;
    const found: Conversation[] = [];
    let cursor = after === undefined ? undefined : keyOfConversation(after);
    while (answers !== undefined && found.length < limit) {
      const part = await answers.list(instance, {
        limit: PAGE,
        order,
        ...(cursor !== undefined && { cursor }),
      });
      for (const [index, waiting] of part.approvals.entries()) {
        if (index % AT_ONCE === 0) await yieldToOthers();
        const conversation = await this.#toWaiting(waiting, filter);
        if (conversation !== undefined) found.push(conversation);
      }
      cursor = part.nextCursor;
      if (cursor === undefined) break;
    }
    return found;
  }

  async #listSeen(
    actor: Actor,
    instance: Principal,
    filter: NonNullable<ListParams["filter"]>,
    { after, limit, order }: ListPage,
  ): Promise<Conversation[]> {
    const found: Conversation[] = [];
    let last = after === undefined ? undefined : keyOfConversation(after);
    for (;;) {
      const owner = instance.role === "admin" ? {} : { instance };
      const { tasks } = this.#parts.store;
      const rows =
        order === "desc"
          ? (await tasks.list({ ...owner, limit: PAGE, ...(last !== undefined && { cursor: last }) })).tasks
          : await tasks.inOrder({ ...owner, limit: PAGE, ...(last !== undefined && { after: last }) });
      for (const [index, row] of rows.entries()) {
        if (index % AT_ONCE === 0) await yieldToOthers();
        if (!mayMatch(row, filter)) continue;
        const opened = await this.#load(actor, row);
        if (opened === undefined || !hasParticipant(opened.conversation, filter.participantId)) continue;
        found.push(toConversation(opened));
        if (found.length >= limit) return found;
      }
      last = rows.at(-1)?.key;
      if (rows.length < PAGE) return found;
    }
  }

  async listTurns(actor: Actor, params: TurnsListParams): Promise<TurnList> {
    const { conversation, view } = await this.#history(actor, params.conversationId);
    return this.#page(conversation, listTurns(view, params));
  }

  async replay(actor: Actor, params: ReplayParams): Promise<TurnList & { missedCount: number }> {
    const { conversation, view } = await this.#history(actor, params.conversationId);
    const page = replayTurns(view, params);
    return { ...(await this.#page(conversation, page)), missedCount: page.missedCount };
  }

  /** A task has no threads. */
  async listThreads(actor: Actor, { conversationId }: ThreadListParams): Promise<ThreadPage> {
    await this.#open(actor, conversationId);
    assertCapability(actor, "canViewHistory", "canJoin");
    return { threads: [], hasMore: false };
  }

  async readable(actor: Actor, conversationId: string): Promise<ReadableConversation> {
    const { conversation, view } = await this.#history(actor, conversationId);
    return { view, read: (records, most) => this.#conversations.contents(conversation, records, most) };
  }

  async summary(actor: Actor, params: SummaryParams): Promise<SummaryResult> {
    const { conversation, view, row } = await this.#history(actor, params.conversationId);
    return this.#summaries.summary(conversation, view, row.title, params);
  }

  // --- writing --------------------------------------------------------------------------------------------------

  /** A turn by the owner is a message to the task, as with `POST /message`. Others answer what waits for them. */
  async turn(actor: Actor, params: TurnParams): Promise<{ turn: Turn }> {
    const waiting = await this.#waitingFor(actor, params.conversationId);
    if (waiting !== undefined) return this.#answerForOwner(actor, params);
    const { conversation, view } = await this.#open(actor, params.conversationId);
    if (!ownsTask(actor, conversation.instance)) throw denied("only the owner can write to a task");
    if (params.threadId !== undefined) throw new MapError("THREAD_NOT_FOUND");
    if (params.inReplyTo !== undefined) {
      requireTurn(view.state, view.viewer, params.inReplyTo, view.upTo, "reference");
    }
    if (params.visibility !== undefined && params.visibility.type !== "all") {
      throw new MapError(
        "INVALID_PARAMS",
        "visibility: turns of a task are visible to all of its participants",
      );
    }
    if (params.contentType === APPROVAL) return this.#decide(conversation, params.content);
    const body = textOf(params);
    const subject = params.metadata?.subject;
    const { instance, taskId, derivation } = conversation;
    // Text answers the only call that waits; with several of them it would not be clear which one is meant.
    const answers = derivation.open.size === 1;
    const { runtime } = this.#parts;
    const { number } = await this.#engine(
      answers
        ? runtime.answerBreakpoint(instance, taskId, { results: { content: body } })
        : runtime.post(instance, {
            taskId,
            body,
            // Text could be meant as an approval, and never is one.
            refuseInApproval: true,
            ...(typeof subject === "string" && { subject }),
          }),
    );
    return { turn: await this.#turnAt(conversation.key, number) };
  }

  /** Named approvers decide with structured content, and give results as text. They cannot write anything else. */
  async #answerForOwner(actor: Actor, params: TurnParams): Promise<{ turn: Turn }> {
    const { instance } = actor;
    const { answers } = this.#parts;
    const key = keyOfConversation(params.conversationId);
    if (instance === undefined || answers === undefined || key === undefined) {
      throw new MapError("CONVERSATION_NOT_FOUND");
    }
    const { contentType, content } = params;
    const { number } = await this.#engine(
      (async () =>
        contentType === APPROVAL
          ? answers.decide(instance, key, isRecord(content) ? content.decisions : undefined)
          : answers.answer(instance, key, textOf(params)))(),
    );
    return { turn: await this.#turnAt(key, number) };
  }

  /** Decides calls that wait for approval: structured content, never text. */
  async #decide({ key, taskId }: TaskConversation, content: unknown): Promise<{ turn: Turn }> {
    const given = isRecord(content) ? content.decisions : undefined;
    const { number } = await this.#engine(
      (async () => {
        const decisions = readDecisions(given, "content.decisions");
        return this.#parts.runtime.answerApprovals({ key, taskId }, { decisions });
      })(),
    );
    return { turn: await this.#turnAt(key, number) };
  }

  /** Cancels the task; allowed for its owner and for admins (decision A6). */
  async close(actor: Actor, params: CloseParams): Promise<{ conversation: Conversation }> {
    const { conversation } = await this.#open(actor, params.conversationId);
    const { answers, runtime } = this.#parts;
    const { key, instance } = conversation;
    const by = actor.instance ?? { role: "user", id: actor.acting };
    // What is done to another owner's task is recorded in the audit log.
    await this.#engine(
      answers === undefined || ownsTask(actor, instance)
        ? runtime.cancel(key, `${by.role} '${by.id}'`)
        : answers.cancel(by, key),
    );
    return { conversation: toConversation(await this.#open(actor, params.conversationId)) };
  }

  // --- operations that task conversations do not support
  // --------------------------------------------------------

  readonly join: ConversationOperations["join"] = (...asked) => this.refuse(...asked);
  readonly leave: ConversationOperations["leave"] = (...asked) => this.refuse(...asked);
  readonly invite: ConversationOperations["invite"] = (...asked) => this.refuse(...asked);
  readonly createThread: ConversationOperations["createThread"] = (...asked) => this.refuse(...asked);

  /** @throws MapError MAIL_PERMISSION_DENIED, or CONVERSATION_NOT_FOUND for those who may not see the task */
  async refuse(actor: Actor, { conversationId }: { readonly conversationId: string }): Promise<never> {
    await this.#open(actor, conversationId);
    throw new MapError(
      "MAIL_PERMISSION_DENIED",
      "not supported for a task's conversation: its members follow its mail, and it has no threads",
      { reason: "task_conversation" },
    );
  }

  /** The turn of an agent's latest message in a task. */
  async latestTurnOf(key: string, author: string): Promise<Turn | undefined> {
    const conversation = await this.#conversations.get(key);
    const record = conversation?.state.turns.findLast(
      (turn) => turn.author === author && turn.contentType === "text",
    );
    if (conversation === undefined || record === undefined) return undefined;
    return (await this.#conversations.contents(conversation, [record]))[0];
  }

  // --- inside ---------------------------------------------------------------------------------------------------

  /** A caller that may not see it gets the same error as for one that does not exist (law 6). */
  async #open(actor: Actor, conversationId: string): Promise<Opened> {
    const key = keyOfConversation(conversationId);
    const row = key === undefined ? undefined : await this.#parts.store.tasks.byKey(key);
    const opened = row === undefined ? undefined : await this.#load(actor, row);
    if (opened !== undefined) return opened;
    // Retention may have removed it.
    if (key !== undefined && row === undefined) this.#conversations.forget(key);
    throw new MapError("CONVERSATION_NOT_FOUND", undefined, { conversationId });
  }

  async #load(actor: Actor, row: TaskRow): Promise<Opened | undefined> {
    const viewer = viewerOfTask(actor, row.instance);
    if (viewer.kind === "outsider") return undefined;
    const conversation = await this.#conversations.get(row.key);
    if (conversation === undefined) return undefined;
    const { state } = conversation;
    return { row, conversation, view: { state, viewer, upTo: state.number } };
  }

  async #history(actor: Actor, conversationId: string): Promise<Opened> {
    const opened = await this.#open(actor, conversationId);
    assertCapability(actor, "canViewHistory");
    return opened;
  }

  async #page(conversation: TaskConversation, page: TurnPage): Promise<TurnList> {
    return turnList(page, await this.#conversations.contents(conversation, page.turns, MAX_PAGE_BYTES));
  }

  async #turnAt(key: string, number: number): Promise<Turn> {
    const conversation = await this.#conversations.upTo(key, number);
    const record = conversation?.state.turnsById.get(`turn-${key}-${number}`);
    const [turn] =
      conversation === undefined || record === undefined
        ? []
        : await this.#conversations.contents(conversation, [record]);
    if (turn === undefined) throw new Error(`task ${key} lost entry ${number}`);
    return turn;
  }

  /** Another owner's task as far as an approver sees it: who owns it, its title and the calls that wait. */
  async #waitingFor(actor: Actor, conversationId: string): Promise<Conversation | undefined> {
    const { instance } = actor;
    const { answers } = this.#parts;
    const key = keyOfConversation(conversationId);
    if (instance === undefined || answers === undefined || key === undefined) return undefined;
    // First what costs little: most callers are owners.
    const row = await this.#parts.store.tasks.byKey(key);
    if (row?.status !== "paused" || ownsTask(actor, row.instance)) return undefined;
    const waiting = await answers.find(instance, key);
    return waiting === undefined ? undefined : this.#toWaiting(waiting, {});
  }

  async #toWaiting(
    { key, calls }: WaitingTask,
    filter: NonNullable<ListParams["filter"]>,
  ): Promise<Conversation | undefined> {
    const row = await this.#parts.store.tasks.byKey(key);
    const conversation = row === undefined ? undefined : await this.#conversations.get(key);
    if (row === undefined || conversation === undefined || !mayMatch(row, filter)) return undefined;
    const { participantId } = filter;
    if (participantId !== undefined && participantId !== ownerIdOf(row.instance)) return undefined;
    const ofKind = (wanted: WaitingTask["calls"][number]["kind"]) =>
      calls.filter(({ kind }) => kind === wanted).map(({ call }) => openCall(call));
    const derived = conversationAt(conversation.state, conversation.state.number);
    return {
      ...derived,
      ...(row.title !== undefined && { subject: row.title }),
      status: "paused",
      metadata: {
        ...derived.metadata,
        task_status: "paused",
        open_calls: ofKind("breakpoint"),
        approvals: ofKind("approval"),
      },
    };
  }

  /** Translates an error of the engine. */
  async #engine<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      throw isPublicError(error) ? fromMailroomError(error) : error;
    }
  }
}

/** The status and title come from the task's row, the rest from its journal. */
function toConversation({ row, conversation, view }: Opened): Conversation {
  const derived = conversationAt(conversation.state, view.upTo);
  return {
    ...derived,
    ...(row.title !== undefined && { subject: row.title }),
    metadata: {
      ...derived.metadata,
      task_status: statusWordOf(row, derived),
      ...(derived.status === "paused" && {
        open_calls: [...conversation.derivation.open.values()],
        ...(conversation.derivation.toApprove.length > 0 && { approvals: conversation.derivation.toApprove }),
      }),
    },
  };
}

/** @throws MapError INVALID_CONTENT_TYPE */
function textOf({ contentType, content }: TurnParams): string {
  const body = toPlainText(content);
  if (contentType === "text" && body !== undefined) return body;
  throw new MapError("INVALID_CONTENT_TYPE", "contentType: a message to a task must be text", {
    contentType: contentType.slice(0, 100),
    reason: "task_conversation",
  });
}

/** The row was read before the journal, so the journal wins where they differ. */
function statusWordOf({ status }: TaskRow, derived: Conversation): string {
  if (statusOfTask(status) === derived.status) return status;
  return derived.status === "active" ? "running" : derived.status;
}

function mayMatch(
  { instance, status, createdAt }: TaskRow,
  filter: NonNullable<ListParams["filter"]>,
): boolean {
  return (
    (filter.type === undefined || filter.type.length === 0 || filter.type.includes(typeOfTask(instance))) &&
    (filter.status === undefined ||
      filter.status.length === 0 ||
      filter.status.includes(statusOfTask(status))) &&
    (filter.createdAfter === undefined || createdAt > filter.createdAfter) &&
    (filter.createdBefore === undefined || createdAt < filter.createdBefore)
  );
}

function hasParticipant({ state, instance }: TaskConversation, wanted: string | undefined): boolean {
  if (wanted === undefined || wanted === ownerIdOf(instance)) return true;
  return activePeriod(state.participants.get(wanted), state.number) !== undefined;
}

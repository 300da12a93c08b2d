/** The `mail/*` methods on conversations of tasks (decisions F4): read from the journal, written through the engine. */
import { setImmediate as othersTurn } from "node:timers/promises";
import type { Clock, Store, TaskRow } from "../../engine/ports.js";
import { type Runtime, RuntimeError } from "../../engine/runtime/index.js";
import type { Book } from "../book/book.js";
import { type TurnList, turnList } from "../book/contents.js";
import type { ConversationDetails } from "../book/reader.js";
import type { SummaryResult } from "../book/summary-scope.js";
import { assertCapability, requireTurn } from "../domain/checks.js";
import { textOf } from "../domain/content.js";
import { denied, MapError } from "../domain/errors.js";
import {
  type CloseParams,
  type GetParams,
  HEAVIEST_PAGE,
  type ListParams,
  type ReplayParams,
  type SummaryParams,
  type TurnParams,
  type TurnsListParams,
} from "../domain/params.js";
import {
  listTurns,
  participantsOf,
  recentTurns,
  replayTurns,
  statsOf,
  type TurnPage,
  type View,
} from "../domain/queries.js";
import { activeStint, conversationAt } from "../domain/state.js";
import { extractiveSummariser, type Summariser } from "../domain/summary.js";
import type { Caller, Conversation, Turn } from "../domain/types.js";
import { keyOfConversation, ownerIdOf, statusOfTask, typeOfTask } from "./derive.js";
import { type TaskConversation, TaskConversations } from "./live.js";
import { TaskSource } from "./source.js";
import { TaskSummaries } from "./summaries.js";
import { ownsTask, viewerOfTask } from "./viewer.js";

export interface TaskBookParts {
  readonly store: Store;
  readonly runtime: Pick<Runtime, "post" | "cancel">;
  readonly clock: Pick<Clock, "now">;
  readonly summariser?: Summariser;
}

interface Opened {
  readonly row: TaskRow;
  readonly conversation: TaskConversation;
  readonly view: View;
}

/** Tasks whose rows are read in one go when a list is made. */
const PAGE = 100;
/** Tasks looked at before others have their turn: each may have to be read from its journal. */
const AT_ONCE = 10;

export class TaskBook implements Book {
  readonly source: TaskSource;
  readonly #parts: TaskBookParts;
  readonly #conversations: TaskConversations;
  readonly #summaries: TaskSummaries;

  constructor(parts: TaskBookParts) {
    this.#parts = parts;
    this.#conversations = new TaskConversations(parts.store);
    this.source = new TaskSource(this.#conversations);
    this.#summaries = new TaskSummaries(
      this.#conversations,
      parts.summariser ?? extractiveSummariser,
      parts.clock,
    );
  }

  /** The journal behind a conversation's id, if that is the conversation of a task. */
  async journalOf(conversationId: string): Promise<string | undefined> {
    const key = keyOfConversation(conversationId);
    return key === undefined ? undefined : (await this.#parts.store.tasks.byKey(key))?.key;
  }

  /**
   * Whether this is the conversation of a task, and may be named as a parent.
   * @throws MapError CONVERSATION_NOT_FOUND, TURN_NOT_FOUND
   */
  async mayRefer(caller: Caller, conversationId: string, turnId: string | undefined): Promise<boolean> {
    if ((await this.journalOf(conversationId)) === undefined) return false;
    const { view } = await this.#open(caller, conversationId);
    if (turnId !== undefined) requireTurn(view.state, view.viewer, turnId, view.upTo, "history");
    return true;
  }

  // --- reading --------------------------------------------------------------------------------------------------

  async get(caller: Caller, { conversationId, include = {} }: GetParams): Promise<ConversationDetails> {
    const opened = await this.#open(caller, conversationId);
    assertCapability(caller, "canViewHistory", "canJoin");
    const { conversation, view } = opened;
    const readable = caller.capabilities.canViewHistory;
    return {
      conversation: conversationOf(opened),
      ...(include.participants === true && { participants: participantsOf(view) }),
      ...(include.threads === true && { threads: [] }),
      ...(include.stats === true && { stats: statsOf(view) }),
      ...(include.recentTurns !== undefined && {
        recentTurns: readable
          ? await this.#conversations.contents(
              conversation,
              recentTurns(view, include.recentTurns),
              HEAVIEST_PAGE,
            )
          : [],
      }),
    };
  }

  /** Up to `limit` conversations of the caller's tasks, or for an admin of all, in the order of their ids. */
  async list(
    caller: Caller,
    filter: NonNullable<ListParams["filter"]>,
    { after, limit }: { readonly after: string | undefined; readonly limit: number },
  ): Promise<Conversation[]> {
    const { person } = caller;
    // Tasks have no parents.
    if (person === undefined || filter.parentConversationId !== undefined) return [];
    const found: Conversation[] = [];
    let last = after === undefined ? undefined : keyOfConversation(after);
    for (;;) {
      const rows = await this.#parts.store.tasks.inOrder({
        limit: PAGE,
        ...(person.role !== "admin" && { instance: person }),
        ...(last !== undefined && { after: last }),
      });
      for (const [index, row] of rows.entries()) {
        if (index % AT_ONCE === 0) await othersTurn();
        if (!mayMatch(row, filter)) continue;
        const opened = await this.#load(caller, row);
        if (opened === undefined || !hasParticipant(opened.conversation, filter.participantId)) continue;
        found.push(conversationOf(opened));
        if (found.length >= limit) return found;
      }
      last = rows.at(-1)?.key;
      if (rows.length < PAGE) return found;
    }
  }

  async listTurns(caller: Caller, params: TurnsListParams): Promise<TurnList> {
    const { conversation, view } = await this.#history(caller, params.conversationId);
    return this.#page(conversation, listTurns(view, params));
  }

  async replay(caller: Caller, params: ReplayParams): Promise<TurnList & { missedCount: number }> {
    const { conversation, view } = await this.#history(caller, params.conversationId);
    const page = replayTurns(view, params);
    return { ...(await this.#page(conversation, page)), missedCount: page.missedCount };
  }

  async summary(caller: Caller, params: SummaryParams): Promise<SummaryResult> {
    const { conversation, view, row } = await this.#history(caller, params.conversationId);
    return this.#summaries.summary(conversation, view, row.title, params);
  }

  // --- writing --------------------------------------------------------------------------------------------------

  /** What the owner says is a message to the task, as by `POST /message`. */
  async turn(caller: Caller, params: TurnParams): Promise<{ turn: Turn }> {
    const { conversation, view } = await this.#open(caller, params.conversationId);
    if (!ownsTask(caller, conversation.instance)) throw denied("only its owner writes into a task");
    if (params.threadId !== undefined) throw new MapError("THREAD_NOT_FOUND");
    if (params.inReplyTo !== undefined) {
      requireTurn(view.state, view.viewer, params.inReplyTo, view.upTo, "reference");
    }
    if (params.visibility !== undefined && params.visibility.type !== "all") {
      throw new MapError("INVALID_PARAMS", "visibility: what is said in a task is for all of it");
    }
    const body = textOf(params.content);
    if (params.contentType !== "text" || body === undefined) {
      throw new MapError("INVALID_CONTENT_TYPE", "a task is told things as text", {
        contentType: params.contentType.slice(0, 100),
        reason: "task_conversation",
      });
    }
    const subject = params.metadata?.subject;
    const { number } = await this.#engine(
      this.#parts.runtime.post(conversation.instance, {
        taskId: conversation.taskId,
        body,
        ...(typeof subject === "string" && { subject }),
      }),
    );
    const turn = await this.#turnAt(conversation.key, number);
    if (turn === undefined) throw new Error(`task ${conversation.key} lost entry ${number}`);
    return { turn };
  }

  /** Its owner ends a task by cancelling it, and so may an admin (decisions A6). */
  async close(caller: Caller, params: CloseParams): Promise<{ conversation: Conversation }> {
    const { conversation } = await this.#open(caller, params.conversationId);
    const { role, id } = caller.person ?? { role: "user", id: caller.acting };
    await this.#engine(this.#parts.runtime.cancel(conversation.key, `${role} '${id}'`));
    return { conversation: conversationOf(await this.#open(caller, params.conversationId)) };
  }

  // --- what a task's conversation does not have -----------------------------------------------------------------

  readonly join: Book["join"] = (...asked) => this.#refuse(...asked);
  readonly leave: Book["leave"] = (...asked) => this.#refuse(...asked);
  readonly invite: Book["invite"] = (...asked) => this.#refuse(...asked);
  readonly createThread: Book["createThread"] = (...asked) => this.#refuse(...asked);
  readonly listThreads: Book["listThreads"] = (...asked) => this.#refuse(...asked);

  async #refuse(caller: Caller, { conversationId }: { readonly conversationId: string }): Promise<never> {
    await this.#open(caller, conversationId);
    throw new MapError(
      "MAIL_PERMISSION_DENIED",
      "this is the conversation of a task: its members come with its mail, and it has no threads",
      { reason: "task_conversation" },
    );
  }

  /** The turn that an agent's latest message in a task became. */
  async latestTurnOf(key: string, author: string): Promise<Turn | undefined> {
    const conversation = await this.#conversations.get(key);
    const record = conversation?.state.turns.findLast(
      (turn) => turn.author === author && turn.contentType === "text",
    );
    if (conversation === undefined || record === undefined) return undefined;
    return (await this.#conversations.contents(conversation, [record]))[0];
  }

  // --- inside ---------------------------------------------------------------------------------------------------

  /** Whoever may not see it is told what is told about one that does not exist (law 5). */
  async #open(caller: Caller, conversationId: string): Promise<Opened> {
    const key = keyOfConversation(conversationId);
    const row = key === undefined ? undefined : await this.#parts.store.tasks.byKey(key);
    const opened = row === undefined ? undefined : await this.#load(caller, row);
    if (opened !== undefined) return opened;
    // Retention may have removed it.
    if (key !== undefined && row === undefined) this.#conversations.forget(key);
    throw new MapError("CONVERSATION_NOT_FOUND", undefined, { conversationId });
  }

  async #load(caller: Caller, row: TaskRow): Promise<Opened | undefined> {
    const viewer = viewerOfTask(caller, row.instance);
    if (viewer.kind === "stranger") return undefined;
    const conversation = await this.#conversations.get(row.key);
    if (conversation === undefined) return undefined;
    const { state } = conversation;
    return { row, conversation, view: { state, viewer, upTo: state.number } };
  }

  async #history(caller: Caller, conversationId: string): Promise<Opened> {
    const opened = await this.#open(caller, conversationId);
    assertCapability(caller, "canViewHistory");
    return opened;
  }

  async #page(conversation: TaskConversation, page: TurnPage): Promise<TurnList> {
    return turnList(page, await this.#conversations.contents(conversation, page.turns, HEAVIEST_PAGE));
  }

  async #turnAt(key: string, number: number): Promise<Turn | undefined> {
    const conversation = await this.#conversations.upTo(key, number);
    const record = conversation?.state.turnsById.get(`turn-${key}-${number}`);
    if (conversation === undefined || record === undefined) return undefined;
    return (await this.#conversations.contents(conversation, [record]))[0];
  }

  /** What the engine refuses, in the words of this protocol. */
  async #engine<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      throw error instanceof RuntimeError ? mapErrorOf(error) : error;
    }
  }
}

export function mapErrorOf(error: RuntimeError): MapError {
  const details = { ...error.details, reason: error.code };
  switch (error.code) {
    case "already_ended":
      return new MapError("CONVERSATION_CLOSED", error.message, details);
    case "overloaded":
    case "store_busy":
    case "closed":
      return new MapError("EXHAUSTED", error.message, details);
    case "unknown_task":
      return new MapError("CONVERSATION_NOT_FOUND", error.message, details);
    case "store_failed":
      return new MapError("INTERNAL_ERROR", "it could not be stored", details);
    default:
      return new MapError("INVALID_PARAMS", error.message, details);
  }
}

/** The exact status and the title are the task's own; the rest is derived. */
function conversationOf({ row, conversation, view }: Opened): Conversation {
  const derived = conversationAt(conversation.state, view.upTo);
  return {
    ...derived,
    ...(row.title !== undefined && { subject: row.title }),
    metadata: { ...derived.metadata, task_status: statusWordOf(row, derived) },
  };
}

/** The row was read a moment earlier than the journal: where they differ, what the journal says is newer. */
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
  return activeStint(state.participants.get(wanted), state.number) !== undefined;
}

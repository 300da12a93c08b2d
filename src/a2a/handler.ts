/** The methods of A2A for one caller. Everything is read out of journals; what is kept beside them is which messages came. */
import type { ListTasksRequest, ListTasksResponse } from "@a2a-js/sdk";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import type { InstanceId } from "../engine/ports.js";
import { type PostedAt, type RowsFor, RuntimeError } from "../engine/runtime/index.js";
import type { Instance } from "../library/instance.js";
import type { Mailroom } from "../library/mailroom.js";
import type { Task as MailTask } from "../library/task.js";
import { isOver, type Round, Rounds } from "./rounds.js";
import {
  type A2AError,
  type AgentCard,
  ExtendedAgentCardNotConfiguredError,
  type Message,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  TaskNotCancelableError,
  TaskNotFoundError,
  TaskState,
  UnsupportedOperationError,
} from "./sdk.js";
import type { SentMessages } from "./sent-messages.js";
import { answerIn, artifactOf, parseRoundId, roundId, stateOf, statusOf, taskOf, textOf } from "./wire.js";

/** MAIL tasks that `ListTasks` looks into, the newest first. */
const LISTED = 200;
const PAGE = 50;
const LARGEST_PAGE = 100;

export interface HandlerParts {
  readonly mailroom: Mailroom;
  readonly instance: InstanceId;
  readonly card: AgentCard;
  readonly sent: SentMessages;
  /** Fires when the caller has gone or the server closes: whoever waits is let go, the task goes on. */
  readonly signal: AbortSignal;
}

/** A round, and as far as its journal was read. */
interface Found {
  readonly task: MailTask;
  readonly rounds: Rounds;
  readonly round: Round;
  readonly read: number;
}

export class A2aHandler implements A2ARequestHandler {
  readonly #mailroom: Mailroom;
  readonly #instance: InstanceId;
  readonly #tasks: Instance;
  readonly #card: AgentCard;
  readonly #sent: SentMessages;
  readonly #signal: AbortSignal;

  constructor({ mailroom, instance, card, sent, signal }: HandlerParts) {
    this.#mailroom = mailroom;
    this.#instance = instance;
    this.#tasks = mailroom.instance(instance);
    this.#card = card;
    this.#sent = sent;
    this.#signal = signal;
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#card;
  }

  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    throw new ExtendedAgentCardNotConfiguredError("there is no other card than the public one");
  }

  async sendMessage(request: SendMessageRequest): Promise<Task> {
    const { returnImmediately = false, historyLength } = request.configuration ?? {};
    let found = await this.#post(request);
    if (!returnImmediately) for await (const next of this.#changes(found)) found = next;
    return taskOf(placeOf(found.task), found.round, historyLength);
  }

  async *sendMessageStream(request: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    yield* this.#stream(await this.#post(request));
  }

  async *resubscribe({ id }: { id: string }): AsyncGenerator<StreamResponse, void, undefined> {
    const found = await this.#find(id);
    if (isOver(found.round)) throw new UnsupportedOperationError(`task '${id}' has ended`);
    yield* this.#stream(found);
  }

  async getTask({ id, historyLength }: { id: string; historyLength?: number | undefined }): Promise<Task> {
    const { task, round } = await this.#find(id);
    return taskOf(placeOf(task), round, historyLength);
  }

  async cancelTask({ id }: { id: string }): Promise<Task> {
    const { task, round } = await this.#find(id);
    if (isOver(round)) throw new TaskNotCancelableError(`task '${id}' has ended`);
    await refusals(task.cancel());
    return this.getTask({ id });
  }

  async listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    const { contextId, status, pageSize = PAGE, pageToken, historyLength, statusTimestampAfter } = request;
    if (pageSize < 1 || pageSize > LARGEST_PAGE)
      throw new RequestMalformedError(`pageSize is a number from 1 to ${LARGEST_PAGE}`);
    const from = pageToken === "" ? 0 : Number(pageToken);
    if (!Number.isSafeInteger(from) || from < 0)
      throw new RequestMalformedError("pageToken is none of this server's");
    const after =
      statusTimestampAfter === undefined ? Number.NEGATIVE_INFINITY : Date.parse(statusTimestampAfter);
    const all = (await this.#roundsOf(contextId))
      .filter(({ round }) => status === TaskState.TASK_STATE_UNSPECIFIED || stateOf(round) === status)
      .filter(({ round }) => !(round.at < after))
      .sort((one, other) => other.round.at - one.round.at);
    const page = all.slice(from, from + pageSize);
    return {
      tasks: page.map(({ task, round }) => taskOf(placeOf(task), round, historyLength ?? 0)),
      nextPageToken: from + pageSize < all.length ? String(from + pageSize) : "",
      pageSize,
      totalSize: all.length,
    };
  }

  async createTaskPushNotificationConfig(): Promise<never> {
    throw noPush();
  }

  async getTaskPushNotificationConfig(): Promise<never> {
    throw noPush();
  }

  async listTaskPushNotificationConfigs(): Promise<never> {
    throw noPush();
  }

  async deleteTaskPushNotificationConfig(): Promise<never> {
    throw noPush();
  }

  /** A person's message: it begins a round, adds to one, or answers what one asks. */
  async #post({ message }: SendMessageRequest): Promise<Found> {
    if (message === undefined || message.parts.length === 0)
      throw new RequestMalformedError("there is no message, or it has no parts");
    const { taskId, number } = await this.#sent.once(this.#instance, message, (rows) =>
      refusals(this.#deliver(message, rows)),
    );
    return this.#read(await this.#tasks.requireTask(taskId), number);
  }

  async #deliver(message: Message, rows: RowsFor): Promise<PostedAt> {
    const { runtime } = this.#mailroom;
    const named = message.taskId === "" ? undefined : await this.#find(message.taskId);
    if (named !== undefined) {
      if (message.contextId !== "" && message.contextId !== named.task.id)
        throw new RequestMalformedError("the task does not belong to this context");
      if (isOver(named.round))
        throw new UnsupportedOperationError("the task has ended: send the message with its contextId alone");
    }
    const known = named ?? (message.contextId === "" ? undefined : await this.#latestOf(message.contextId));
    if (known?.round.status === "input-required") {
      const given = answerIn(message.parts);
      const results = typeof given === "string" ? { content: given } : given;
      return runtime.answerBreakpoint(this.#instance, known.task.id, { results }, rows);
    }
    const taskId = known?.task.id ?? message.contextId;
    const body = textOf(message.parts);
    return runtime.post(this.#instance, { body, rows, ...(taskId !== "" && { taskId }) });
  }

  async *#stream(found: Found): AsyncGenerator<StreamResponse, void, undefined> {
    const place = placeOf(found.task);
    const taskId = roundId(place.key, found.round.number);
    const { contextId } = place;
    yield { payload: { $case: "task", value: taskOf(place, found.round) } };
    for await (const { round } of this.#changes(found)) {
      const artifact = artifactOf(round);
      if (artifact !== undefined) {
        const value = { taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined };
        yield { payload: { $case: "artifactUpdate", value } };
      }
      const value = { taskId, contextId, status: statusOf(place, round), metadata: undefined };
      yield { payload: { $case: "statusUpdate", value } };
    }
  }

  /** How a round goes on, until it has ended or waits for a person. */
  async *#changes(found: Found): AsyncGenerator<Found, void, undefined> {
    const { task, rounds, read } = found;
    if (found.round.status !== "working") return;
    for await (const { number, entry } of task.journal({ after: read, live: true, signal: this.#signal })) {
      const round = rounds.see(number, entry);
      if (round === undefined || round.number !== found.round.number) continue;
      yield { task, rounds, round, read: number };
      if (round.status !== "working") return;
    }
  }

  async #find(id: string): Promise<Found> {
    const parsed = parseRoundId(id);
    const row = parsed === undefined ? undefined : await this.#mailroom.store.tasks.byKey(parsed.key);
    // Whose it is decides whether it exists (law 5).
    const mine = row?.instance.role === this.#instance.role && row.instance.id === this.#instance.id;
    const task = mine && row !== undefined ? await this.#tasks.task(row.taskId) : undefined;
    if (parsed === undefined || task === undefined || task.key !== parsed.key) throw noTask(id);
    const found = await this.#read(task, parsed.number);
    if (found.round.number !== parsed.number) throw noTask(id);
    return found;
  }

  async #latestOf(contextId: string): Promise<Found | undefined> {
    const task = await this.#tasks.task(contextId);
    return task === undefined ? undefined : this.#read(task, Number.POSITIVE_INFINITY);
  }

  /** The round to which an entry of the journal belongs. */
  async #read(task: MailTask, number: number): Promise<Found> {
    const rounds = new Rounds();
    let read = 0;
    for await (const next of task.journal()) {
      rounds.see(next.number, next.entry);
      read = next.number;
    }
    const round = rounds.all.findLast((candidate) => candidate.number <= number);
    if (round === undefined) throw noTask(task.id);
    return { task, rounds, round, read };
  }

  async #roundsOf(contextId: string): Promise<Pick<Found, "task" | "round">[]> {
    const ids =
      contextId === ""
        ? (await this.#tasks.tasks({ limit: LISTED })).tasks.map((task) => task.task_id)
        : [contextId];
    const found: Pick<Found, "task" | "round">[] = [];
    for (const id of ids) {
      const task = await this.#tasks.task(id);
      if (task === undefined) continue;
      const rounds = new Rounds();
      for await (const { number, entry } of task.journal()) rounds.see(number, entry);
      found.push(...rounds.all.map((round) => ({ task, round })));
    }
    return found;
  }
}

function placeOf({ key, id }: MailTask) {
  return { key, contextId: id };
}

function noTask(id: string): A2AError {
  return new TaskNotFoundError(`there is no task '${id}'`);
}

function noPush(): A2AError {
  return new PushNotificationNotSupportedError("subscribe to the task instead");
}

/** What the engine refuses, in the words of A2A. */
async function refusals<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    switch (error.code) {
      case "already_ended":
        throw new TaskNotCancelableError({ message: error.message, cause: error });
      case "unknown_task":
        throw new TaskNotFoundError({ message: error.message, cause: error });
      case "bad_input":
        throw new RequestMalformedError({ message: error.message, cause: error });
      default:
        throw new UnsupportedOperationError({ message: error.message, cause: error });
    }
  }
}

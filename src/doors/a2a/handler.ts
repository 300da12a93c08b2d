/** The methods of A2A for one caller. All data comes from journals, except the ids of received messages. */
import type { ListTasksRequest, ListTasksResponse } from "@a2a-js/sdk";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import { isUuid, MailroomError, type Semaphore } from "../../base/index.js";
import {
  type InstanceId,
  type JournalLocation,
  type NumberedEntry,
  type RowsFor,
  readDecisions,
} from "../../engine/index.js";
import type { AnswersForOthers, NextTurn } from "../../extension/index.js";
import type { Approval, Instance, Mailroom, Task as MailTask } from "../../library/index.js";
import { failureOf, type Report } from "./failures.js";
import { GrowingAnswer } from "./growing-answer.js";
import { hasEnded, type Round, RoundReader } from "./rounds.js";
import {
  type A2AError,
  type AgentCard,
  type Artifact,
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
import {
  answerArtifact,
  answeredMessage,
  answerIn,
  artifactOf,
  decisionsIn,
  parseRoundId,
  roundId,
  stateOf,
  statusOf,
  taskOf,
  toText,
  waitingTask,
} from "./wire.js";

/** Maximum number of MAIL tasks that `ListTasks` reads, newest first. */
const LISTED = 200;
const PAGE = 50;
const MAX_PAGE = 100;
const ENTRIES_OF_A_TURN = 200;

export interface HandlerParts {
  readonly mailroom: Mailroom;
  readonly instance: InstanceId;
  readonly card: AgentCard;
  readonly sent: SentMessages;
  readonly answers: AnswersForOthers;
  /** Aborts when the caller disconnects or the server closes. Waiting ends; the task continues. */
  readonly signal: AbortSignal;
  readonly turn: NextTurn;
  /** Whole journals that are read at once, by caller. */
  readonly reads: Semaphore;
  /** Rejects caller-chosen context ids that are not UUIDs (decision A3). */
  readonly strictIds: boolean;
  /** Receives internal errors. */
  readonly report: Report;
}

/** A round, and the last journal number that was read. */
interface Found {
  readonly task: MailTask;
  readonly rounds: RoundReader;
  readonly round: Round;
  readonly read: number;
}

export class A2aHandler implements A2ARequestHandler {
  readonly #mailroom: Mailroom;
  readonly #instance: InstanceId;
  readonly #tasks: Instance;
  readonly #card: AgentCard;
  readonly #sent: SentMessages;
  readonly #answers: AnswersForOthers;
  readonly #signal: AbortSignal;
  readonly #turn: NextTurn;
  readonly #reads: Semaphore;
  /** How many were read. */
  #entries = 0;
  readonly #strictIds: boolean;
  readonly #report: Report;

  constructor({
    mailroom,
    instance,
    card,
    sent,
    answers,
    signal,
    turn,
    reads,
    strictIds,
    report,
  }: HandlerParts) {
    this.#mailroom = mailroom;
    this.#instance = instance;
    this.#tasks = mailroom.instance(instance);
    this.#card = card;
    this.#sent = sent;
    this.#answers = answers;
    this.#signal = signal;
    this.#turn = turn;
    this.#reads = reads;
    this.#strictIds = strictIds;
    this.#report = report;
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#card;
  }

  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    throw new ExtendedAgentCardNotConfiguredError("this server has only the public card");
  }

  sendMessage(request: SendMessageRequest): Promise<Task | Message> {
    return this.#answer(async () => {
      const { returnImmediately = false, historyLength } = request.configuration ?? {};
      checkHistoryLength(historyLength);
      const posted = await this.#post(request);
      if ("messageId" in posted) return posted;
      let found = posted;
      if (!returnImmediately) for await (const next of this.#changes(found)) found = next;
      return taskOf(locationOf(found.task), found.round, historyLength);
    });
  }

  async *sendMessageStream(request: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const posted = await this.#post(request);
    if ("messageId" in posted) yield { payload: { $case: "message", value: posted } };
    else yield* this.#stream(posted);
  }

  async *resubscribe({ id }: { id: string }): AsyncGenerator<StreamResponse, void, undefined> {
    const found = await this.#find(id);
    if (hasEnded(found.round)) throw new UnsupportedOperationError(`task '${id}' has ended`);
    yield* this.#stream(found);
  }

  getTask({ id, historyLength }: { id: string; historyLength?: number | undefined }): Promise<Task> {
    return this.#answer(async () => {
      checkHistoryLength(historyLength);
      const waiting = await this.#waiting(id);
      if (waiting !== undefined) return waitingTask(waiting);
      const { task, round } = await this.#find(id);
      return taskOf(locationOf(task), round, historyLength);
    });
  }

  cancelTask({ id }: { id: string }): Promise<Task> {
    return this.#answer(async () => {
      const { task, round } = await this.#find(id);
      if (hasEnded(round)) throw new TaskNotCancelableError(`task '${id}' has ended`);
      await task.cancel();
      return this.getTask({ id });
    });
  }

  listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#answer(() => this.#list(request));
  }

  async #list(request: ListTasksRequest): Promise<ListTasksResponse> {
    const { contextId, status, pageSize = PAGE, pageToken, historyLength, statusTimestampAfter } = request;
    checkHistoryLength(historyLength);
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MAX_PAGE)
      throw new RequestMalformedError(`pageSize must be an integer from 1 to ${MAX_PAGE}`);
    const from = pageToken === "" ? 0 : Number(pageToken);
    if (!Number.isSafeInteger(from) || from < 0) throw new RequestMalformedError("pageToken is invalid");
    const after =
      statusTimestampAfter === undefined ? Number.NEGATIVE_INFINITY : Date.parse(statusTimestampAfter);
    if (Number.isNaN(after)) throw new RequestMalformedError("statusTimestampAfter must be an RFC 3339 time");
    const rounds = (await this.#roundsOf(contextId)).map(({ task, round }) => ({
      at: round.at,
      state: stateOf(round),
      shown: () => taskOf(locationOf(task), round, historyLength ?? 0),
    }));
    const waiting = (await this.#answers.list(this.#instance)).approvals
      .filter(({ key }) => contextId === "" || contextId === key)
      .map((approval) => ({
        at: approval.since,
        state: TaskState.TASK_STATE_INPUT_REQUIRED,
        shown: () => waitingTask(approval),
      }));
    const all = [...rounds, ...waiting]
      .filter(({ state }) => status === TaskState.TASK_STATE_UNSPECIFIED || state === status)
      .filter(({ at }) => at >= after)
      .sort((one, other) => other.at - one.at);
    const page = all.slice(from, from + pageSize);
    return {
      tasks: page.map(({ shown }) => shown()),
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

  /** Converts errors to A2A errors. Streams convert theirs when they are written. */
  async #answer<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw failureOf(error, this.#report);
    }
  }

  /**
   * Handles a user's message: it begins a round, adds to one, or answers a paused one.
   * @returns a message if it answered another owner's task, whose rounds the caller does not see
   */
  async #post({ message }: SendMessageRequest): Promise<Found | Message> {
    if (message === undefined || message.parts.length === 0)
      throw new RequestMalformedError("the message is missing or has no parts");
    const { key, taskId, number } = await this.#sent.once(this.#instance, message, (rows) =>
      this.#deliver(message, rows),
    );
    const task = await this.#tasks.task(taskId);
    return task?.key === key ? this.#read(task, number) : answeredMessage(key, message.messageId);
  }

  async #deliver(message: Message, rows: RowsFor): Promise<JournalLocation> {
    const { runtime } = this.#mailroom;
    const waiting = await this.#waiting(message.taskId);
    if (waiting !== undefined) {
      const decisions = decisionsIn(message.parts);
      return decisions !== undefined
        ? this.#answers.decide(this.#instance, waiting.key, decisions, rows)
        : this.#answers.answer(this.#instance, waiting.key, answerIn(message.parts), rows);
    }
    const named = message.taskId === "" ? undefined : await this.#find(message.taskId);
    if (named !== undefined) {
      if (message.contextId !== "" && message.contextId !== named.task.id)
        throw new RequestMalformedError("the task does not belong to this context");
      if (hasEnded(named.round))
        throw new UnsupportedOperationError("the task has ended; send the message with only its contextId");
    }
    const known = named ?? (message.contextId === "" ? undefined : await this.#latestOf(message.contextId));
    if (known?.round.status === "input-required") {
      const decisions = decisionsIn(message.parts);
      if (decisions !== undefined) {
        const at = { key: known.task.key, taskId: known.task.id };
        return runtime.answerApprovals(at, { decisions: readDecisions(decisions) }, rows);
      }
      const given = answerIn(message.parts);
      const results = typeof given === "string" ? { content: given } : given;
      return runtime.answerBreakpoint(this.#instance, known.task.id, { results }, rows);
    }
    const taskId = known?.task.id ?? message.contextId;
    if (this.#strictIds && taskId !== "" && !isUuid(taskId))
      throw new RequestMalformedError("contextId must be a UUID on this server (strict_ids)");
    const body = toText(message.parts);
    if (body === "") throw new RequestMalformedError("the message has no content: its parts are empty");
    return runtime.post(this.#instance, { body, rows, ...(taskId !== "" && { taskId }) });
  }

  async *#stream(found: Found): AsyncGenerator<StreamResponse, void, undefined> {
    const location = locationOf(found.task);
    const taskId = roundId(location.key, found.round.number);
    const { contextId } = location;
    yield { payload: { $case: "task", value: taskOf(location, found.round) } };
    const artifactUpdate = (artifact: Artifact, append: boolean, lastChunk: boolean): StreamResponse => {
      const value = { taskId, contextId, artifact, append, lastChunk, metadata: undefined };
      return { payload: { $case: "artifactUpdate", value } };
    };
    const answer = new GrowingAnswer(this.#mailroom, location.key);
    const changes = this.#changes(found);
    try {
      for (let next = changes.next(); ; ) {
        const changed = await Promise.race([next, answer.changed()]);
        for (const { text, append } of answer.take()) {
          yield artifactUpdate(answerArtifact(text), append, false);
        }
        if (changed === undefined) continue;
        if (changed.done === true) return;
        const { round } = changed.value;
        const artifact = artifactOf(round);
        if (artifact !== undefined) yield artifactUpdate(artifact, false, true);
        const value = { taskId, contextId, status: statusOf(location, round), metadata: undefined };
        yield { payload: { $case: "statusUpdate", value } };
        next = changes.next();
      }
    } finally {
      answer.close();
      // Not awaited: it may be waiting for an entry.
      changes.return().catch(() => {});
    }
  }

  /** Yields the updates of a round until it has ended or waits for a user. */
  async *#changes(found: Found): AsyncGenerator<Found, void, undefined> {
    const { task, rounds, read } = found;
    if (found.round.status !== "working") return;
    for await (const { number, entry } of task.journal({ after: read, live: true, signal: this.#signal })) {
      const round = rounds.apply(number, entry);
      if (round === undefined || round.number !== found.round.number) continue;
      yield { task, rounds, round, read: number };
      if (round.status !== "working") return;
    }
  }

  /** A task of another owner that waits for the caller. Its A2A id is its key. */
  async #waiting(id: string): Promise<Approval | undefined> {
    return isUuid(id) ? this.#answers.find(this.#instance, id) : undefined;
  }

  async #find(id: string): Promise<Found> {
    const parsed = parseRoundId(id);
    const row = parsed === undefined ? undefined : await this.#mailroom.store.tasks.byKey(parsed.key);
    // Tasks of other instances are invisible to this caller (law 6).
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

  /** Many calls of one caller read together no more in a turn than one does. */
  async *#journalOf(task: MailTask): AsyncGenerator<NumberedEntry, void, undefined> {
    for await (const next of task.journal()) {
      this.#entries += 1;
      if (this.#entries % ENTRIES_OF_A_TURN === 0) {
        await this.#turn();
        if (this.#signal.aborted) throw new MailroomError("aborted", "the client has left");
      }
      yield next;
    }
  }

  /** The round to which an entry of the journal belongs. */
  #read(task: MailTask, number: number): Promise<Found> {
    return this.#reads.run(() => this.#readNow(task, number), `${this.#instance.role}:${this.#instance.id}`);
  }

  async #readNow(task: MailTask, number: number): Promise<Found> {
    if (this.#signal.aborted) throw new MailroomError("aborted", "the client has left");
    const rounds = new RoundReader();
    let read = 0;
    for await (const next of this.#journalOf(task)) {
      rounds.apply(next.number, next.entry);
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
      const rounds = new RoundReader();
      for await (const { number, entry } of this.#journalOf(task)) rounds.apply(number, entry);
      found.push(...rounds.all.map((round) => ({ task, round })));
    }
    return found;
  }
}

function locationOf({ key, id }: MailTask) {
  return { key, contextId: id };
}

function noTask(id: string): A2AError {
  return new TaskNotFoundError(`unknown task '${id}'`);
}

function noPush(): A2AError {
  return new PushNotificationNotSupportedError("subscribe to the task instead");
}

function checkHistoryLength(length: number | undefined): void {
  if (length === undefined || (Number.isInteger(length) && length >= 0)) return;
  throw new RequestMalformedError("historyLength must be an integer from 0");
}

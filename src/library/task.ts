/** One task of a caller. */
import { MailroomError } from "../base/index.js";
import type {
  ApprovalDecision,
  BreakpointResult,
  BudgetChange,
  DeltaNotification,
  HistoryItem,
  InstanceId,
  ManualReply,
  NumberedEntry,
  PostReceipt,
  RoundStart,
  Runtime,
  TaskStatus,
} from "../engine/index.js";
import {
  endsRound,
  eventsOf,
  historyOf,
  type MailEvent,
  outcomeOf,
  parseEventId,
  Round,
  recordOf,
  type TaskRecord,
  type TaskState,
} from "../engine/index.js";
import type { MAILMessage } from "../mail/index.js";
import { type Answer, answerOf } from "./answer.js";

/** Which events of a task are read. */
export interface EventOptions {
  /** Id of the last event already seen. Default: from the task's beginning. */
  readonly after?: string;
  /**
   * Continue with new events: until a round ends (`"round"`), until the round of a message ends (the receipt of
   * `post`), or until the mailroom is closed (`true`). Default `false`.
   */
  readonly live?: boolean | "round" | RoundStart;
  /** Ends the iteration. Default: none. */
  readonly signal?: AbortSignal;
  /** With `live`: receives the text that agents write, while they write it. */
  readonly onDelta?: (delta: TextDelta) => void;
}

/** A piece of text that an agent writes. It is not stored: the events have the finished text. */
export type TextDelta = Omit<DeltaNotification, "key">;

/** Passes on what agents write for a task. @returns a function that stops it */
function watchText(
  runtime: Runtime,
  key: string,
  onDelta: ((delta: TextDelta) => void) | undefined,
): () => void {
  if (onDelta === undefined) return () => {};
  const subscription = runtime.watchText(key, ({ key: _internal, ...delta }) => onDelta(delta));
  return () => subscription.close();
}

/** Waits for the outcome of a message, and passes on what agents write until then. */
export async function outcomeWithText(
  runtime: Runtime,
  posted: PostReceipt,
  onDelta: ((delta: TextDelta) => void) | undefined,
): Promise<Answer> {
  const stop = watchText(runtime, posted.key, onDelta);
  try {
    return answerOf(posted, await posted.outcome);
  } finally {
    stop();
  }
}

/** The result of a breakpoint: one text for all waiting calls, or one result per call. */
export type BreakpointAnswer = string | readonly BreakpointResult[];

export interface ManualStepOptions {
  /** Text for the agent, in addition to the collected messages. */
  readonly payload?: string;
  /** How the agent's text is sent. Default: a broadcast to all agents. */
  readonly type?: ManualReply["type"];
  readonly targets?: readonly string[];
}

/**
 * One task of a caller.
 *
 * @example
 * const { task } = await mailroom.user("ann").post("Plan a trip to Tokyo");
 * for await (const event of task.events({ live: "round" })) console.log(event.event);
 */
export class Task {
  /** The caller's task id. */
  readonly id: string;
  /** The internal key, which names the task's journal. */
  readonly key: string;
  readonly #runtime: Runtime;
  readonly #instance: InstanceId;
  readonly #title: (key: string) => Promise<string | undefined>;

  constructor(parts: {
    id: string;
    key: string;
    runtime: Runtime;
    instance: InstanceId;
    title: (key: string) => Promise<string | undefined>;
  }) {
    this.id = parts.id;
    this.key = parts.key;
    this.#runtime = parts.runtime;
    this.#instance = parts.instance;
    this.#title = parts.title;
  }

  async status(): Promise<TaskStatus> {
    const facts = await this.#runtime.summary(this.key);
    if (facts === undefined) throw this.#gone();
    return facts.status;
  }

  /** The whole task in the reference's format, including its events unless `events` is false. */
  async record(options: { events?: boolean } = {}): Promise<TaskRecord> {
    const events: MailEvent[] = [];
    if (options.events !== false) for await (const event of this.events()) events.push(event);
    const title = await this.#title(this.key);
    return this.#read((state) => recordOf(state, events, title, this.#runtime.rules));
  }

  /** An agent's memory of the task. */
  async history(agent: string): Promise<HistoryItem[]> {
    return this.#read((state) => historyOf(state, agent));
  }

  /** The journal itself: every entry after a number. */
  journal(
    options: { after?: number; live?: boolean; signal?: AbortSignal } = {},
  ): AsyncGenerator<NumberedEntry, void, undefined> {
    const { after = 0, live = false, signal } = options;
    return this.#runtime.follow(this.key, { after, once: !live, ...(signal !== undefined && { signal }) });
  }

  /** @throws MailroomError `bad_input` when `after` is not the id of an event, `store_failed` */
  async *events(options: EventOptions = {}): AsyncGenerator<MailEvent, void, undefined> {
    const { after, live = false, signal, onDelta } = options;
    const from = after === undefined ? { number: 0, index: Number.POSITIVE_INFINITY } : parseEventId(after);
    if (from === undefined) throw new MailroomError("bad_input", `'${after}' is not the id of an event`);
    const round = typeof live === "object" ? new Round(live) : undefined;
    // The last seen entry may have more events, and a round must be read from its beginning.
    const first = typeof live === "object" ? Math.min(from.number, live.number) : from.number;
    const journal = this.journal({
      after: Math.max(0, first - 1),
      live: live !== false,
      ...(signal !== undefined && { signal }),
    });
    const stop = watchText(this.#runtime, this.key, live === false ? undefined : onDelta);
    try {
      for await (const { number, entry } of journal) {
        const outcome = round?.see(number, entry);
        for (const [index, event] of eventsOf(this.id, number, entry).entries()) {
          if (number < from.number || (number === from.number && index <= from.index)) continue;
          yield event;
          if (live === "round" && endsRound(event)) return;
        }
        if (outcome !== undefined) return;
      }
    } finally {
      stop();
    }
    if (live !== false && this.#runtime.failure !== undefined) throw this.#runtime.failure;
  }

  /** Sends another message to the task; an ended task continues. Resolves when the message is durable. */
  post(body: string, options: { subject?: string } = {}): Promise<PostReceipt> {
    return this.#runtime.post(this.#instance, { body, taskId: this.id, ...options });
  }

  /** Sends another message to the task and waits for the result. */
  async ask(
    body: string,
    options: { subject?: string; onDelta?: (delta: TextDelta) => void } = {},
  ): Promise<Answer> {
    const { onDelta, ...rest } = options;
    return outcomeWithText(this.#runtime, await this.post(body, rest), onDelta);
  }

  /**
   * Answers the calls that a paused task waits for: one text for a single call, or a result for each of several.
   * Resolves when the round that follows has ended.
   */
  async answer(
    results: BreakpointAnswer,
    options: { onDelta?: (delta: TextDelta) => void } = {},
  ): Promise<Answer> {
    return outcomeWithText(this.#runtime, await this.answerLater(results), options.onDelta);
  }

  /** The same, resolving as soon as the answer is durable. */
  answerLater(results: BreakpointAnswer): Promise<PostReceipt> {
    const given = typeof results === "string" ? { content: results } : results;
    return this.#runtime.answerBreakpoint(this.#instance, this.id, { results: given });
  }

  /**
   * Decides calls that wait for approval. Approved ones run, with changed arguments if any are given. Resolves when the
   * round that follows has ended, or the task waits for the remaining calls.
   * @throws MailroomError `not_paused`, `unknown_calls`, `bad_arguments`, `bad_answer`
   */
  async decide(decisions: readonly ApprovalDecision[]): Promise<Answer> {
    const posted = await this.decideLater(decisions);
    return answerOf(posted, await posted.outcome);
  }

  /** The same, resolving as soon as the decisions are durable. */
  decideLater(decisions: readonly ApprovalDecision[]): Promise<PostReceipt> {
    return this.#runtime.answerApprovals({ key: this.key, taskId: this.id }, { decisions });
  }

  /**
   * Changes the limits on what model calls of the task use: a number sets one, `null` lifts it. A task that was paused at
   * a limit continues if no limit is reached.
   * @throws MailroomError `bad_input`, `forbidden` for a task of another swarm's caller
   */
  async setBudget(limits: BudgetChange): Promise<void> {
    const { role, id } = this.#instance;
    if (role === "swarm")
      throw new MailroomError("forbidden", "the budget of another swarm's task is not its own");
    await this.#runtime.setTaskBudget(this.key, { limits, by: { role, id } });
  }

  /** @throws MailroomError `already_ended` */
  async cancel(): Promise<void> {
    await this.#runtime.cancel(this.key, `${this.#instance.role} '${this.#instance.id}'`);
  }

  /**
   * Manual mode: runs one agent once with the messages collected for it.
   * @returns the message made from the agent's text; `undefined` if it answered with tool calls only, or the task paused
   * or ended first.
   * @throws MailroomError `bad_answer` when its turn failed, `wrong_state` when the agent requires something first (the
   * task is then paused), `closed`, `store_failed`
   */
  async step(agent: string, options: ManualStepOptions = {}): Promise<MAILMessage | undefined> {
    const reply: ManualReply = { type: options.type ?? "broadcast", targets: options.targets ?? [] };
    const { number } = await this.#runtime.manualStep(
      this.#instance,
      this.id,
      agent,
      options.payload ?? "",
      reply,
    );
    let answered = false;
    for await (const { entry } of this.journal({ after: number, live: true })) {
      if (entry.t === "turn_failed" && entry.agent === agent)
        throw new MailroomError("bad_answer", entry.message);
      if (entry.t === "turn" && entry.agent === agent) {
        answered = true;
        if (entry.calls.length > 0) return undefined;
      } else if (answered && entry.t === "sent") return entry.message;
      else if (entry.t === "paused" && entry.reason !== undefined)
        throw new MailroomError("wrong_state", entry.message.message.body);
      else if (outcomeOf(entry) !== undefined) return undefined;
    }
    const cut = "the mailroom was closed before the agent answered; it is asked again at the next start";
    throw this.#runtime.failure ?? new MailroomError("closed", cut);
  }

  async #read<T>(reader: (state: TaskState) => T): Promise<T> {
    const found = await this.#runtime.read(this.key, (state) => ({ value: reader(state) }));
    if (found === undefined) throw this.#gone();
    return found.value;
  }

  #gone(): MailroomError {
    return new MailroomError("unknown_task", `task '${this.id}' was removed`);
  }
}

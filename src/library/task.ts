/** One task in the hands of its owner. */
import type { HistoryItem } from "../engine/agent.js";
import type { BreakpointResult } from "../engine/commands.js";
import type { ManualReply } from "../engine/entries.js";
import type { InstanceId, TaskStatus } from "../engine/ports.js";
import type { NumberedEntry, Posted, RoundStart, Runtime } from "../engine/runtime/index.js";
import { outcomeOf, Round, RuntimeError } from "../engine/runtime/index.js";
import { historyOf, type TaskState } from "../engine/state.js";
import { endsRound, eventsOf, type MailEvent, parseEventId } from "../engine/view/events.js";
import { recordOf, type TaskRecord } from "../engine/view/record.js";
import type { MAILMessage } from "../mail/message.js";
import { type Answer, answerOf } from "./answer.js";

export interface EventOptions {
  /** Id of the last event already seen. Default: from the task's beginning. */
  readonly after?: string;
  /**
   * Go on with what happens next: until a round ends (`"round"`), until the round of a message ends (what `post`
   * resolved with), or until the mailroom is closed (`true`). Default `false`.
   */
  readonly live?: boolean | "round" | RoundStart;
  readonly signal?: AbortSignal;
}

export type BreakpointAnswer = string | readonly BreakpointResult[];

export interface ManualStepOptions {
  /** Said to the agent in addition to the messages that have gathered. */
  readonly payload?: string;
  /** How the agent's text is sent on. Default: a broadcast to everybody. */
  readonly type?: ManualReply["type"];
  readonly targets?: readonly string[];
}

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

  /** Everything about the task in the reference's form, its events included. */
  async record(): Promise<TaskRecord> {
    const events: MailEvent[] = [];
    for await (const event of this.events()) events.push(event);
    const title = await this.#title(this.key);
    return this.#read((state) => recordOf(state, events, title));
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

  /** @throws RuntimeError `bad_input` when `after` is not the id of an event, `store_failed` */
  async *events(options: EventOptions = {}): AsyncGenerator<MailEvent, void, undefined> {
    const { after, live = false, signal } = options;
    const from = after === undefined ? { number: 0, index: Number.POSITIVE_INFINITY } : parseEventId(after);
    if (from === undefined) throw new RuntimeError("bad_input", `'${after}' is not the id of an event`);
    const round = typeof live === "object" ? new Round(live) : undefined;
    // The entry of the last event seen may have more of them, and a round is told from its beginning on.
    const first = typeof live === "object" ? Math.min(from.number, live.number) : from.number;
    const journal = this.journal({
      after: Math.max(0, first - 1),
      live: live !== false,
      ...(signal !== undefined && { signal }),
    });
    for await (const { number, entry } of journal) {
      const outcome = round?.see(number, entry);
      for (const [index, event] of eventsOf(this.id, number, entry).entries()) {
        if (number < from.number || (number === from.number && index <= from.index)) continue;
        yield event;
        if (live === "round" && endsRound(event)) return;
      }
      if (outcome !== undefined) return;
    }
    if (live !== false && this.#runtime.failure !== undefined) throw this.#runtime.failure;
  }

  /** Another message to the task; one that has ended goes on. Resolves when the message is durable. */
  post(body: string, options: { subject?: string } = {}): Promise<Posted> {
    return this.#runtime.post(this.#instance, { body, taskId: this.id, ...options });
  }

  /** Another message to the task, and what becomes of it. */
  async ask(body: string, options: { subject?: string } = {}): Promise<Answer> {
    const posted = await this.post(body, options);
    return answerOf(posted, await posted.outcome);
  }

  /**
   * Answers the calls that a paused task waits for: one text for a single call, or a result for each of several.
   * Resolves when the round that follows has ended.
   */
  async answer(results: BreakpointAnswer): Promise<Answer> {
    const posted = await this.answerLater(results);
    return answerOf(posted, await posted.outcome);
  }

  /** The same, resolving as soon as the answer is durable. */
  answerLater(results: BreakpointAnswer): Promise<Posted> {
    const given = typeof results === "string" ? { content: results } : results;
    return this.#runtime.answerBreakpoint(this.#instance, this.id, { results: given });
  }

  /** @throws RuntimeError `already_ended` */
  async cancel(): Promise<void> {
    await this.#runtime.cancel(this.key, `${this.#instance.role} '${this.#instance.id}'`);
  }

  /**
   * Manual mode: runs one agent once with the messages that have gathered for it.
   * @returns the message that the agent's text became; nothing if it answered with tool calls alone, or the task stands
   * still before it answers.
   * @throws RuntimeError `bad_answer` when its turn failed, `wrong_state` when the agent first needs something (the
   * task is paused for that), `closed`, `store_failed`
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
        throw new RuntimeError("bad_answer", entry.message);
      if (entry.t === "turn" && entry.agent === agent) {
        answered = true;
        if (entry.calls.length > 0) return undefined;
      } else if (answered && entry.t === "sent") return entry.message;
      else if (entry.t === "paused" && entry.reason !== undefined)
        throw new RuntimeError("wrong_state", entry.message.message.body);
      else if (outcomeOf(entry) !== undefined) return undefined;
    }
    const cut = "the mailroom was closed before the agent answered; it is asked again at the next start";
    throw this.#runtime.failure ?? new RuntimeError("closed", cut);
  }

  async #read<T>(reader: (state: TaskState) => T): Promise<T> {
    const found = await this.#runtime.read(this.key, (state) => ({ value: reader(state) }));
    if (found === undefined) throw this.#gone();
    return found.value;
  }

  #gone(): RuntimeError {
    return new RuntimeError("unknown_task", `there is no task '${this.id}' any more`);
  }
}

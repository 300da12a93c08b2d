/**
 * Remote agents: a durable mailbox with three operations, `next`, `answer` and `release`. The doors (MAP, MCP) are
 * built on this and add nothing to what is promised here. Only keys of tasks are kept.
 */

import type { MAILMessage } from "../../mail/message.js";
import type { AgentAnswer, HistoryItem, OfferedTool, TaskFacts } from "../agent.js";
import type { Command } from "../commands.js";
import { mailToLend } from "../decide.js";
import type { InstanceId, JournalKey } from "../ports.js";
import { historyOf } from "../state.js";
import { describe } from "./actions.js";
import { copyAnswer } from "./answers.js";
import { RuntimeError } from "./errors.js";
import type { LiveTask, TaskUnit } from "./task-work.js";
import { withResolvers } from "./waiters.js";

/** A message in the hands of the process that serves the agent. */
export interface Lending {
  readonly agent: string;
  readonly key: JournalKey;
  readonly attempt: number;
  readonly message: MAILMessage;
  readonly task: TaskFacts;
  readonly instance: InstanceId;
  readonly history: readonly HistoryItem[];
  readonly tools: readonly OfferedTool[];
}

export interface RemoteParts {
  /** Resolves when it is durable. `decided` sees it before that. */
  readonly command: (key: JournalKey, command: Command, decided?: (unit: TaskUnit) => void) => Promise<void>;
  readonly peek: (key: JournalKey) => LiveTask | undefined;
  readonly tools: (agent: string) => readonly OfferedTool[];
  readonly isRemote: (agent: string) => boolean;
}

type Taker = (key: JournalKey | undefined) => void;

export class RemoteMailboxes {
  readonly #parts: RemoteParts;
  /** Tasks with mail for an agent that is not lent, oldest first. */
  readonly #waiting = new Map<string, Set<JournalKey>>();
  readonly #takers = new Map<string, Taker[]>();
  /** By task and agent: the attempt that the last lending of this process had. */
  readonly #lendings = new Map<JournalKey, Map<string, number>>();
  /** On the way to a taker, but not yet lent: not to be given to a second one. */
  readonly #handing = new Set<string>();
  #closed = false;

  constructor(parts: RemoteParts) {
    this.#parts = parts;
  }

  /** There may be mail for remote agents in this task. */
  offer(live: LiveTask): void {
    for (const [agent, { lent }] of live.state.agents) {
      if (!this.#parts.isRemote(agent) || mailToLend(live.state, agent) === undefined) continue;
      // A lending that was not made here is void: it was made by an earlier process.
      const isLent = lent !== undefined && this.#lendings.get(live.key)?.get(agent) === lent.attempt;
      if (!isLent && !this.#handing.has(handingKey(live.key, agent))) this.#put(agent, live.key);
    }
  }

  /** The task does not run any more, or is not in memory: there is nothing in it to lend. */
  withdraw(key: JournalKey, why: "stopped" | "gone"): void {
    for (const [agent, waiting] of this.#waiting) {
      if (waiting.delete(key) && waiting.size === 0) this.#waiting.delete(agent);
    }
    if (why === "gone") this.#lendings.delete(key);
  }

  /** The next message for the agent, from whichever task has waited longest. Waits until there is one. */
  async next(agent: string, options: { signal?: AbortSignal } = {}): Promise<Lending | undefined> {
    this.#assertRemote(agent);
    for (;;) {
      if (this.#closed || options.signal?.aborted === true) return undefined;
      const key = this.#take(agent) ?? (await this.#wait(agent, options.signal));
      if (key === undefined) return undefined;
      const lending = await this.#lend(agent, key);
      if (lending !== undefined) return lending;
    }
  }

  /** Commits what the agent did, once. @throws RuntimeError `stale_attempt` for a lending that is over */
  async answer(
    lending: Pick<Lending, "agent" | "key" | "attempt">,
    messageId: string,
    answer: AgentAnswer,
  ): Promise<void> {
    const { agent, key, attempt } = lending;
    await this.#parts.command(key, {
      type: "answer_lent",
      agent,
      messageId,
      attempt,
      answer: copied(answer),
    });
    this.#end(lending);
  }

  /** Puts the message back; the next taker gets it with a new attempt number. */
  async release(lending: Pick<Lending, "agent" | "key" | "attempt">, messageId: string): Promise<void> {
    const { agent, key, attempt } = lending;
    try {
      await this.#parts.command(key, { type: "release", agent, messageId, attempt });
    } catch (error) {
      if (error instanceof RuntimeError && error.code === "unknown_task") return;
      throw error;
    }
    this.#end(lending);
  }

  close(): void {
    this.#closed = true;
    for (const takers of this.#takers.values()) for (const take of takers) take(undefined);
    this.#takers.clear();
  }

  /** Forgets a lending, unless the message behind it was lent meanwhile. */
  #end({ key, agent, attempt }: Pick<Lending, "agent" | "key" | "attempt">): void {
    const lendings = this.#lendings.get(key);
    if (lendings?.get(agent) === attempt) lendings.delete(agent);
    if (lendings?.size === 0) this.#lendings.delete(key);
    this.#offerAgain(key);
  }

  async #lend(agent: string, key: JournalKey): Promise<Lending | undefined> {
    let lending: Lending | undefined;
    try {
      await this.#parts.command(key, { type: "lend", agent }, ({ live }) => {
        // Decided, and handed over when it is durable; by then the state may have moved on.
        lending = this.#lendingOf(live, agent);
        if (lending === undefined) return;
        const lendings = this.#lendings.get(key);
        if (lendings === undefined) this.#lendings.set(key, new Map([[agent, lending.attempt]]));
        else lendings.set(agent, lending.attempt);
      });
      return lending;
    } catch (error) {
      // Taken back in the meantime (cancelled, paused, removed): there may be other mail.
      const over =
        error instanceof RuntimeError && (error.code === "no_mail" || error.code === "unknown_task");
      if (over) return undefined;
      throw error;
    } finally {
      this.#handing.delete(handingKey(key, agent));
      // If nobody has it, it is there for the next taker, who could not be offered it meanwhile.
      this.#offerAgain(key);
    }
  }

  #offerAgain(key: JournalKey): void {
    const live = this.#parts.peek(key);
    if (live !== undefined) this.offer(live);
  }

  #lendingOf({ key, state, work }: LiveTask, agent: string): Lending | undefined {
    const { lent, mailbox } = state.agents.get(agent) ?? {};
    const mail = mailbox?.find((waiting) => waiting.number === lent?.number);
    if (lent === undefined || mail === undefined) return undefined;
    const tools = this.#parts.tools(agent);
    const isLast = lent.number === state.lastTurn;
    return {
      agent,
      key,
      attempt: lent.attempt,
      message: mail.message,
      task: work.facts,
      instance: state.instance,
      history: historyOf(state, agent),
      tools: isLast ? tools.filter((tool) => tool.name === "task_complete") : tools,
    };
  }

  #put(agent: string, key: JournalKey): void {
    const takers = this.#takers.get(agent);
    const take = takers?.shift();
    if (take !== undefined) {
      if (takers?.length === 0) this.#takers.delete(agent);
      this.#handing.add(handingKey(key, agent));
      take(key);
      return;
    }
    const waiting = this.#waiting.get(agent);
    if (waiting === undefined) this.#waiting.set(agent, new Set([key]));
    else waiting.add(key);
  }

  #take(agent: string): JournalKey | undefined {
    const waiting = this.#waiting.get(agent);
    const [key] = waiting ?? [];
    if (key === undefined) return undefined;
    waiting?.delete(key);
    if (waiting?.size === 0) this.#waiting.delete(agent);
    this.#handing.add(handingKey(key, agent));
    return key;
  }

  async #wait(agent: string, signal: AbortSignal | undefined): Promise<JournalKey | undefined> {
    const { promise, resolve } = withResolvers<JournalKey | undefined>();
    const takers = this.#takers.get(agent);
    if (takers === undefined) this.#takers.set(agent, [resolve]);
    else takers.push(resolve);
    const onAbort = () => {
      const left = (this.#takers.get(agent) ?? []).filter((other) => other !== resolve);
      if (left.length === 0) this.#takers.delete(agent);
      else this.#takers.set(agent, left);
      resolve(undefined);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #assertRemote(agent: string): void {
    if (this.#parts.isRemote(agent)) return;
    throw new RuntimeError("unknown_agent", `the swarm has no remote agent named '${agent}'`);
  }
}

function copied(answer: AgentAnswer): AgentAnswer {
  try {
    return copyAnswer(answer, "the answer");
  } catch (error) {
    throw new RuntimeError("bad_answer", describe(error));
  }
}

function handingKey(key: JournalKey, agent: string): string {
  return `${key}\n${agent}`;
}

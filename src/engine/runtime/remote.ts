/**
 * Remote agents: a durable mailbox with three operations, `next`, `answer` and `release` (decisions B18). The doors
 * (MAP, MCP) are built on this and add nothing to what is promised here.
 */
import type { MAILMessage } from "../../mail/message.js";
import type { AgentAnswer, HistoryItem, OfferedTool, TaskFacts } from "../agent.js";
import type { Command } from "../commands.js";
import { mailToLend } from "../decide.js";
import type { InstanceId, JournalKey } from "../ports.js";
import { historyOf } from "../state.js";
import { RuntimeError } from "./errors.js";
import type { LiveTask } from "./live-task.js";
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
  readonly apply: (task: LiveTask, command: Command) => Promise<void>;
  readonly task: (key: JournalKey) => Promise<LiveTask | undefined>;
  readonly tools: (agent: string) => readonly OfferedTool[];
  readonly isRemote: (agent: string) => boolean;
}

interface Taker {
  readonly resolve: (task: LiveTask | undefined) => void;
}

export class RemoteMailboxes {
  readonly #parts: RemoteParts;
  /** Tasks with mail for an agent that is not lent, oldest first. */
  readonly #waiting = new Map<string, Set<LiveTask>>();
  readonly #takers = new Map<string, Taker[]>();
  #closed = false;

  constructor(parts: RemoteParts) {
    this.#parts = parts;
  }

  /** There may be mail for remote agents in this task. */
  offer(task: LiveTask): void {
    for (const [agent, { lent }] of task.state.agents) {
      if (!this.#parts.isRemote(agent)) continue;
      const mail = mailToLend(task.state, agent);
      if (mail === undefined || mail.number > task.committed) continue;
      const lending = lendingKey(task.key, agent);
      // A lending that was not made here is void: it was made by an earlier process.
      const isLent = lent !== undefined && this.#lendings.get(lending) === lent.attempt;
      if (!isLent && !this.#handing.has(lending)) this.#put(agent, task);
    }
  }

  /** The next message for the agent, from whichever task has waited longest. Waits until there is one. */
  async next(agent: string, options: { signal?: AbortSignal } = {}): Promise<Lending | undefined> {
    this.#assertRemote(agent);
    for (;;) {
      if (this.#closed || options.signal?.aborted === true) return undefined;
      const task = this.#take(agent) ?? (await this.#wait(agent, options.signal));
      if (task === undefined) return undefined;
      const lending = await this.#lend(agent, task);
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
    const task = await this.#parts.task(key);
    if (task === undefined) throw new RuntimeError("unknown_task", `there is no task '${key}'`);
    await this.#parts.apply(task, { type: "answer_lent", agent, messageId, attempt, answer });
    this.#end(lending);
    this.offer(task);
  }

  /** Puts the message back; the next taker gets it with a new attempt number. */
  async release(lending: Pick<Lending, "agent" | "key" | "attempt">, messageId: string): Promise<void> {
    const { agent, key, attempt } = lending;
    const task = await this.#parts.task(key);
    if (task === undefined) return;
    await this.#parts.apply(task, { type: "release", agent, messageId, attempt });
    this.#end(lending);
    this.offer(task);
  }

  close(): void {
    this.#closed = true;
    for (const takers of this.#takers.values()) for (const taker of takers) taker.resolve(undefined);
    this.#takers.clear();
  }

  /** The attempt that the last lending of this process had. */
  readonly #lendings = new Map<string, number>();
  /** On the way to a taker, but not yet lent: not to be given to a second one. */
  readonly #handing = new Set<string>();

  /** Forgets a lending, unless the message behind it was lent meanwhile. */
  #end({ key, agent, attempt }: Pick<Lending, "agent" | "key" | "attempt">): void {
    const lending = lendingKey(key, agent);
    if (this.#lendings.get(lending) === attempt) this.#lendings.delete(lending);
  }

  async #lend(agent: string, task: LiveTask): Promise<Lending | undefined> {
    const lending = lendingKey(task.key, agent);
    try {
      if (task.lost) return undefined;
      const lent = this.#parts.apply(task, { type: "lend", agent });
      const attempt = task.state.agents.get(agent)?.lent?.attempt;
      if (attempt !== undefined) this.#lendings.set(lending, attempt);
      await lent;
    } catch (error) {
      // Taken back in the meantime (cancelled, paused): there may be other mail.
      if (error instanceof RuntimeError && error.code === "no_mail") return undefined;
      throw error;
    } finally {
      this.#handing.delete(lending);
    }
    const { lent, mailbox } = task.state.agents.get(agent) ?? {};
    const mail = mailbox?.find((waiting) => waiting.number === lent?.number);
    if (lent === undefined || mail === undefined) return undefined;
    const tools = this.#parts.tools(agent);
    const isLast = lent.number === task.state.lastTurn;
    return {
      agent,
      key: task.key,
      attempt: lent.attempt,
      message: mail.message,
      task: task.facts,
      instance: task.state.instance,
      history: historyOf(task.state, agent),
      tools: isLast ? tools.filter((tool) => tool.name === "task_complete") : tools,
    };
  }

  #put(agent: string, task: LiveTask): void {
    const taker = this.#takers.get(agent)?.shift();
    if (taker !== undefined) {
      this.#handing.add(lendingKey(task.key, agent));
      taker.resolve(task);
      return;
    }
    const waiting = this.#waiting.get(agent);
    if (waiting === undefined) this.#waiting.set(agent, new Set([task]));
    else waiting.add(task);
  }

  #take(agent: string): LiveTask | undefined {
    const waiting = this.#waiting.get(agent);
    const [task] = waiting ?? [];
    if (task === undefined) return undefined;
    waiting?.delete(task);
    this.#handing.add(lendingKey(task.key, agent));
    return task;
  }

  async #wait(agent: string, signal: AbortSignal | undefined): Promise<LiveTask | undefined> {
    const { promise, resolve } = withResolvers<LiveTask | undefined>();
    const taker: Taker = { resolve };
    const takers = this.#takers.get(agent);
    if (takers === undefined) this.#takers.set(agent, [taker]);
    else takers.push(taker);
    const onAbort = () => {
      const left = (this.#takers.get(agent) ?? []).filter((other) => other !== taker);
      this.#takers.set(agent, left);
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

function lendingKey(key: JournalKey, agent: string): string {
  return `${key}\n${agent}`;
}

/**
 * The mailboxes of remote agents, with four operations: `next`, `answer`, `fail` and `release`. The protocols (MAP, MCP) build
 * on them and promise nothing beyond them. Only keys of tasks are kept in memory.
 */

import { deferred, hasCode, MailroomError, messageOf, truncate } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { MAILMessage } from "../../mail/index.js";
import type { HistoryItem, OfferedTool, TaskInfo, TurnResult } from "../agent.js";
import type { InstanceId } from "../ports.js";
import type { Command, VettedCall } from "../task/commands.js";
import { mailToLend } from "../task/decide.js";
import { historyOf } from "../task/state.js";
import { copyAnswer } from "./answers.js";
import type { LiveTask, TaskUnit } from "./task-work.js";

/** Characters of a failure's reason that are kept. */
const LONGEST_REASON = 2_000;

/** A message that was lent to the process that serves the agent. */
export interface LentMessage {
  readonly agent: string;
  readonly key: JournalKey;
  readonly attempt: number;
  readonly message: MAILMessage;
  readonly task: TaskInfo;
  readonly instance: InstanceId;
  readonly history: readonly HistoryItem[];
  readonly tools: readonly OfferedTool[];
}

export interface RemoteParts {
  /** Resolves when the command is durable. `decided` is called before that. */
  readonly command: (key: JournalKey, command: Command, decided?: (unit: TaskUnit) => void) => Promise<void>;
  readonly peek: (key: JournalKey) => LiveTask | undefined;
  /** What the actions say about the calls of an answer. */
  readonly vet: (
    key: JournalKey,
    agent: string,
    calls: TurnResult["calls"],
  ) => Promise<readonly VettedCall[]> | undefined;
  readonly tools: (agent: string) => readonly OfferedTool[];
  readonly isRemote: (agent: string) => boolean;
  /** Whether any agent is remote. */
  readonly hasRemote: () => boolean;
}

type Taker = (key: JournalKey | undefined) => void;

export class RemoteMailboxes {
  readonly #parts: RemoteParts;
  /** Tasks with mail for an agent that is not lent, oldest first. */
  readonly #waiting = new Map<string, Set<JournalKey>>();
  readonly #takers = new Map<string, Taker[]>();
  /** By task and agent: the attempt number of the last message that this process lent. */
  readonly #lendings = new Map<JournalKey, Map<string, number>>();
  /** Promised to a taker, but not yet lent: a second taker must not get the same mail. */
  readonly #handing = new Set<string>();
  #closed = false;

  constructor(parts: RemoteParts) {
    this.#parts = parts;
  }

  /** Called after a commit, and when a task was read from the store. */
  react(live: LiveTask): void {
    if (!this.#parts.hasRemote()) return;
    if (live.state.status === "running") this.offer(live);
    else this.withdraw(live.key, "stopped");
  }

  /** Offers the mail for remote agents that waits in this task. */
  offer(live: LiveTask): void {
    for (const [agent, { lent }] of live.state.agents) {
      if (!this.#parts.isRemote(agent) || mailToLend(live.state, agent) === undefined) continue;
      // A message that an earlier process lent is no longer lent.
      const isLent = lent !== undefined && this.#lendings.get(live.key)?.get(agent) === lent.attempt;
      if (!isLent && !this.#handing.has(handingKey(live.key, agent))) this.#put(agent, live.key);
    }
  }

  /** The task no longer runs, or has left memory: it has nothing to lend. */
  withdraw(key: JournalKey, why: "stopped" | "gone"): void {
    for (const [agent, waiting] of this.#waiting) {
      if (waiting.delete(key) && waiting.size === 0) this.#waiting.delete(agent);
    }
    if (why === "gone") this.#lendings.delete(key);
  }

  /** Lends the next message for the agent, from the task that has waited longest. Waits until there is one. */
  async next(agent: string, options: { signal?: AbortSignal } = {}): Promise<LentMessage | undefined> {
    this.#assertRemote(agent);
    for (;;) {
      if (this.#closed || options.signal?.aborted === true) return undefined;
      const key = this.#take(agent) ?? (await this.#wait(agent, options.signal));
      if (key === undefined) return undefined;
      const lending = await this.#lend(agent, key);
      if (lending !== undefined) return lending;
    }
  }

  /** Commits the agent's answer, once. @throws MailroomError `stale_attempt` if the message is no longer lent */
  async answer(
    lending: Pick<LentMessage, "agent" | "key" | "attempt">,
    messageId: string,
    answer: TurnResult,
  ): Promise<void> {
    const { agent, key, attempt } = lending;
    const given = copied(answer);
    const vetted = await this.#parts.vet(key, agent, given.calls);
    await this.#parts.command(key, {
      type: "answer_lent",
      agent,
      messageId,
      attempt,
      answer: given,
      ...(vetted !== undefined && { vetted }),
    });
    this.#end(lending);
  }

  /**
   * The agent cannot answer: its turn fails, as that of a local agent that throws.
   * @throws MailroomError `stale_attempt` if the message is no longer lent
   */
  async fail(
    lending: Pick<LentMessage, "agent" | "key" | "attempt">,
    messageId: string,
    reason: string,
  ): Promise<void> {
    const { agent, key, attempt } = lending;
    const message = truncate(reason, LONGEST_REASON);
    await this.#parts.command(key, { type: "fail_lent", agent, messageId, attempt, message });
    this.#end(lending);
  }

  /** Puts the message back; the next taker gets it with a new attempt number. */
  async release(lending: Pick<LentMessage, "agent" | "key" | "attempt">, messageId: string): Promise<void> {
    const { agent, key, attempt } = lending;
    try {
      await this.#parts.command(key, { type: "release", agent, messageId, attempt });
    } catch (error) {
      if (hasCode(error, "unknown_task")) return;
      throw error;
    }
    this.#end(lending);
  }

  close(): void {
    this.#closed = true;
    for (const takers of this.#takers.values()) for (const take of takers) take(undefined);
    this.#takers.clear();
  }

  /** Removes a lent message, unless the agent's next message was lent meanwhile. */
  #end({ key, agent, attempt }: Pick<LentMessage, "agent" | "key" | "attempt">): void {
    const lendings = this.#lendings.get(key);
    if (lendings?.get(agent) === attempt) lendings.delete(agent);
    if (lendings?.size === 0) this.#lendings.delete(key);
    this.#offerAgain(key);
  }

  async #lend(agent: string, key: JournalKey): Promise<LentMessage | undefined> {
    let lending: LentMessage | undefined;
    try {
      await this.#parts.command(key, { type: "lend", agent }, ({ live }) => {
        // Built now, because the state may have changed when the commit is durable and the message is handed over.
        lending = this.#lendingOf(live, agent);
        if (lending === undefined) return;
        const lendings = this.#lendings.get(key);
        if (lendings === undefined) this.#lendings.set(key, new Map([[agent, lending.attempt]]));
        else lendings.set(agent, lending.attempt);
      });
      return lending;
    } catch (error) {
      // The task was cancelled, paused or removed in the meantime: there may be other mail.
      const over = hasCode(error, "no_mail", "unknown_task");
      if (over) return undefined;
      throw error;
    } finally {
      this.#handing.delete(handingKey(key, agent));
      // If it was not lent, offer it to the next taker: while it was promised, `offer` skipped it.
      this.#offerAgain(key);
    }
  }

  #offerAgain(key: JournalKey): void {
    const live = this.#parts.peek(key);
    if (live !== undefined) this.offer(live);
  }

  #lendingOf({ key, state, work }: LiveTask, agent: string): LentMessage | undefined {
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
    const { promise, resolve } = deferred<JournalKey | undefined>();
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
    throw new MailroomError("unknown_agent", `the swarm has no remote agent named '${agent}'`);
  }
}

function copied(answer: TurnResult): TurnResult {
  try {
    return copyAnswer(answer, "the answer");
  } catch (error) {
    throw new MailroomError("bad_answer", messageOf(error));
  }
}

function handingKey(key: JournalKey, agent: string): string {
  return `${key}\n${agent}`;
}

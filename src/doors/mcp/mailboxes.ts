/**
 * The messages lent to processes that serve agents through MCP. MCP requests are stateless, so the last message lent to
 * each agent is kept here (decision B18).
 */

import { deferred, MailroomError } from "../../base/index.js";
import type { LentMessage } from "../../engine/index.js";
import type { Mailroom } from "../../library/index.js";
import type { AgentToolCall } from "../../mail/index.js";

/** The message that an answer refers to. Message ids are unique only within their task. */
export interface MessageReference {
  readonly message_id?: string | undefined;
  readonly task_id?: string | undefined;
}

/** One wait for an agent's next message, shared by all reads: two waits would borrow two messages to keep one. */
interface Wait {
  readonly lending: Promise<LentMessage | undefined>;
  readonly stop: AbortController;
  readers: number;
}

export class Mailboxes {
  readonly #mailroom: Mailroom;
  readonly #held = new Map<string, LentMessage>();
  readonly #waits = new Map<string, Wait>();

  constructor(mailroom: Mailroom) {
    this.#mailroom = mailroom;
  }

  /**
   * Returns the message lent to the agent until it is answered, otherwise the next one. So a lost response loses no
   * message, and concurrent reads get the same one.
   */
  async read(agent: string, signal: AbortSignal): Promise<LentMessage | undefined> {
    for (;;) {
      const held = await this.current(agent);
      if (held !== undefined) return held;
      // Another read may have borrowed a message meanwhile.
      if (this.#held.has(agent)) continue;
      const wait = this.#waits.get(agent) ?? this.#wait(agent);
      if (!wait.stop.signal.aborted) return join(wait, signal);
      // All earlier readers aborted, but the wait may still yield a message.
      await wait.lending;
    }
  }

  #wait(agent: string): Wait {
    const stop = new AbortController();
    const next = async () => {
      try {
        const lending = await this.#mailroom.remoteAgent(agent).next({ signal: stop.signal });
        if (lending !== undefined) this.#held.set(agent, lending);
        return lending;
      } finally {
        this.#waits.delete(agent);
      }
    };
    const wait: Wait = { lending: next(), stop, readers: 0 };
    this.#waits.set(agent, wait);
    return wait;
  }

  /** The lent message, unless the loan has ended (its task was cancelled, or another process answered). */
  async current(agent: string): Promise<LentMessage | undefined> {
    const held = this.#held.get(agent);
    if (held === undefined) return undefined;
    const valid = await this.#mailroom.runtime.read(
      held.key,
      (state) => state.agents.get(agent)?.lent?.attempt === held.attempt,
    );
    if (valid === true) return held;
    if (this.#held.get(agent) === held) this.#held.delete(agent);
    return undefined;
  }

  /**
   * Commits the agent's answer.
   * @throws MailroomError `no_mail` without a lent message, `stale_attempt` if the loan has ended
   */
  async answer(agent: string, named: MessageReference, calls: readonly AgentToolCall[]): Promise<void> {
    const held = await this.#lentMessage(agent, named);
    await this.#mailroom.remoteAgent(agent).answer(held, { calls });
    this.#forget(agent, held);
  }

  async release(agent: string, named: MessageReference): Promise<void> {
    const held = await this.#lentMessage(agent, named);
    await this.#mailroom.remoteAgent(agent).release(held);
    this.#forget(agent, held);
  }

  async #lentMessage(agent: string, named: MessageReference): Promise<LentMessage> {
    const held = await this.current(agent);
    if (held === undefined) {
      throw new MailroomError("no_mail", "you have no open message; call read_mail first");
    }
    const { message_id = held.message.id, task_id = held.task.id } = named;
    if (message_id !== held.message.id || task_id !== held.task.id) {
      throw new MailroomError(
        "stale_attempt",
        `message ${message_id} of task ${task_id} is not your open message; ` +
          `you have ${held.message.id} of task ${held.task.id}. Call read_mail to see it again`,
      );
    }
    return held;
  }

  #forget(agent: string, lending: LentMessage): void {
    if (this.#held.get(agent) === lending) this.#held.delete(agent);
  }
}

/** Joins the wait until the signal aborts. The last reader that aborts ends the wait. */
async function join(wait: Wait, signal: AbortSignal): Promise<LentMessage | undefined> {
  const { promise: left, resolve } = deferred<undefined>();
  const leave = () => resolve(undefined);
  wait.readers++;
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([wait.lending, left]);
  } finally {
    signal.removeEventListener("abort", leave);
    wait.readers--;
    if (wait.readers === 0) wait.stop.abort();
  }
}

/**
 * The messages that are in the hands of processes that serve agents through MCP. Requests of MCP have no memory, so
 * the door keeps for each agent which message it was given last (decisions B18).
 */

import type { Lending } from "../engine/runtime/index.js";
import { RuntimeError } from "../engine/runtime/index.js";
import { withResolvers } from "../engine/runtime/waiters.js";
import type { Mailroom } from "../library/mailroom.js";
import type { AgentToolCall } from "../mail/calls.js";

/** What a caller says its answer is about. Ids of messages are unique within their task alone. */
export interface NamedMail {
  readonly message_id?: string | undefined;
  readonly task_id?: string | undefined;
}

/** One wait for an agent's next message, however many requests read: two would take two messages out, to hold one. */
interface Wait {
  readonly lending: Promise<Lending | undefined>;
  readonly stop: AbortController;
  readers: number;
}

export class Mailboxes {
  readonly #mailroom: Mailroom;
  readonly #held = new Map<string, Lending>();
  readonly #waits = new Map<string, Wait>();

  constructor(mailroom: Mailroom) {
    this.#mailroom = mailroom;
  }

  /**
   * The message that the agent has in hand, as long as it has not answered it; else the next one. So a message whose
   * delivery was lost on the way is not lost, and those who read at once see the same one.
   */
  async read(agent: string, signal: AbortSignal): Promise<Lending | undefined> {
    for (;;) {
      const held = await this.current(agent);
      if (held !== undefined) return held;
      // Another read may have got one while this one looked.
      if (this.#held.has(agent)) continue;
      const wait = this.#waits.get(agent) ?? this.#wait(agent);
      if (!wait.stop.signal.aborted) return join(wait, signal);
      // Given up by those before us, but it may have a message in its hands yet.
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

  /** The message in hand, unless it was taken away meanwhile (its task was cancelled, somebody else answered it). */
  async current(agent: string): Promise<Lending | undefined> {
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
   * Commits what the agent did with its message.
   * @throws RuntimeError `no_mail` without a message in hand, `stale_attempt` if it is no longer the agent's
   */
  async answer(agent: string, named: NamedMail, calls: readonly AgentToolCall[]): Promise<void> {
    const held = await this.#inHand(agent, named);
    await this.#mailroom.remoteAgent(agent).answer(held, { calls });
    this.#forget(agent, held);
  }

  async release(agent: string, named: NamedMail): Promise<void> {
    const held = await this.#inHand(agent, named);
    await this.#mailroom.remoteAgent(agent).release(held);
    this.#forget(agent, held);
  }

  async #inHand(agent: string, named: NamedMail): Promise<Lending> {
    const held = await this.current(agent);
    if (held === undefined) {
      throw new RuntimeError("no_mail", "you have no message in hand; call read_mail first");
    }
    const { message_id = held.message.id, task_id = held.task.id } = named;
    if (message_id !== held.message.id || task_id !== held.task.id) {
      throw new RuntimeError(
        "stale_attempt",
        `message ${message_id} of task ${task_id} is not in your hands; ` +
          `you have ${held.message.id} of task ${held.task.id}. Call read_mail to see it again`,
      );
    }
    return held;
  }

  #forget(agent: string, lending: Lending): void {
    if (this.#held.get(agent) === lending) this.#held.delete(agent);
  }
}

/** Waits along until the signal fires. Who leaves last ends the wait. */
async function join(wait: Wait, signal: AbortSignal): Promise<Lending | undefined> {
  const { promise: left, resolve } = withResolvers<undefined>();
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

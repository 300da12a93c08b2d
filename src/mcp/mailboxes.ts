/**
 * The messages that are in the hands of processes that serve agents through MCP. Requests of MCP have no memory, so
 * the door keeps for each agent which message it was given last (decisions B18).
 */

import type { Lending } from "../engine/runtime/index.js";
import { RuntimeError } from "../engine/runtime/index.js";
import type { Mailroom } from "../library/mailroom.js";
import type { AgentToolCall } from "../mail/calls.js";

export class Mailboxes {
  readonly #mailroom: Mailroom;
  readonly #held = new Map<string, Lending>();

  constructor(mailroom: Mailroom) {
    this.#mailroom = mailroom;
  }

  /**
   * The message that the agent has in hand, as long as it has not answered it; else the next one. So a message whose
   * delivery was lost on the way is not lost.
   */
  async read(agent: string, signal: AbortSignal): Promise<Lending | undefined> {
    const held = await this.current(agent);
    if (held !== undefined) return held;
    const next = await this.#mailroom.remoteAgent(agent).next({ signal });
    if (next !== undefined) this.#held.set(agent, next);
    return next;
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
  async answer(agent: string, messageId: string | undefined, calls: readonly AgentToolCall[]): Promise<void> {
    const held = await this.#inHand(agent, messageId);
    await this.#mailroom.remoteAgent(agent).answer(held, { calls });
    this.#forget(agent, held);
  }

  async release(agent: string, messageId: string | undefined): Promise<void> {
    const held = await this.#inHand(agent, messageId);
    await this.#mailroom.remoteAgent(agent).release(held);
    this.#forget(agent, held);
  }

  async #inHand(agent: string, messageId: string | undefined): Promise<Lending> {
    const held = await this.current(agent);
    if (held === undefined) {
      throw new RuntimeError("no_mail", "you have no message in hand; call read_mail first");
    }
    if (messageId !== undefined && held.message.id !== messageId) {
      throw new RuntimeError(
        "stale_attempt",
        `message ${messageId} is not in your hands; you have ${held.message.id}. Call read_mail to see it again`,
      );
    }
    return held;
  }

  #forget(agent: string, lending: Lending): void {
    if (this.#held.get(agent) === lending) this.#held.delete(agent);
  }
}

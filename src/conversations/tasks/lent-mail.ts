/**
 * What an agent in another process has in hand. Ids of messages are their senders' choice, so two tasks may have mail of
 * the same id; whoever answers then says which conversation is meant, and never reaches the other task.
 */
import type { Lending } from "../../engine/runtime/index.js";
import { MapError } from "../domain/errors.js";
import { keyOfConversation } from "./derive.js";

export class LentMail {
  readonly #lent = new Set<Lending>();

  get size(): number {
    return this.#lent.size;
  }

  add(lending: Lending): void {
    this.#lent.add(lending);
  }

  delete(lending: Lending): void {
    this.#lent.delete(lending);
  }

  /** Leaves nothing. */
  takeAll(): Lending[] {
    const all = [...this.#lent];
    this.#lent.clear();
    return all;
  }

  /** Where a conversation is named, only its message. @throws MapError INVALID_PARAMS when it could be either of two */
  byMessage(messageId: string, conversationId: unknown): Lending | undefined {
    const named = [...this.#lent].filter(({ message }) => message.id === messageId);
    // Also if there is only one: the one that is meant may have been answered or put back meanwhile.
    if (conversationId !== undefined) return named.find(({ key }) => key === keyOf(conversationId));
    if (named.length <= 1) return named[0];
    throw new MapError(
      "INVALID_PARAMS",
      `two tasks have a message ${messageId.slice(0, 100)}: name the conversation, too`,
      { reason: "ambiguous_message" },
    );
  }

  /** One message of a task is lent at a time (decisions B18). */
  byConversation(conversationId: unknown): Lending | undefined {
    const wanted = keyOf(conversationId);
    if (wanted === undefined) return undefined;
    for (const lending of this.#lent) if (lending.key === wanted) return lending;
    return undefined;
  }
}

function keyOf(conversationId: unknown): string | undefined {
  return typeof conversationId === "string" ? keyOfConversation(conversationId) : undefined;
}

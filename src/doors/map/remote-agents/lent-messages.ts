/**
 * The messages that are lent to a remote agent. Senders choose message ids, so two tasks can have the same
 * id; the answer then names the conversation and never reaches the other task.
 */

import { keyOfConversation, MapError } from "../../../conversations/index.js";
import type { LentMessage } from "../../../engine/index.js";

export class LentMessages {
  readonly #lent = new Set<LentMessage>();

  get size(): number {
    return this.#lent.size;
  }

  add(lending: LentMessage): void {
    this.#lent.add(lending);
  }

  delete(lending: LentMessage): void {
    this.#lent.delete(lending);
  }

  /** Removes and returns all of them. */
  takeAll(): LentMessage[] {
    const all = [...this.#lent];
    this.#lent.clear();
    return all;
  }

  /**
   * Finds a message by id, within a conversation if one is named. @throws MapError INVALID_PARAMS if
   * ambiguous
   */
  byMessage(messageId: string, conversationId: unknown): LentMessage | undefined {
    const named = [...this.#lent].filter(({ message }) => message.id === messageId);
    // Even if there is only one: the intended message may have been answered or released meanwhile.
    if (conversationId !== undefined) return named.find(({ key }) => key === keyOf(conversationId));
    if (named.length <= 1) return named[0];
    throw new MapError(
      "INVALID_PARAMS",
      `two tasks have a message ${messageId.slice(0, 100)}; pass conversationId`,
      { reason: "ambiguous_message" },
    );
  }

  /** One message of a task is lent at a time (decision B18). */
  byConversation(conversationId: unknown): LentMessage | undefined {
    const wanted = keyOf(conversationId);
    if (wanted === undefined) return undefined;
    for (const lending of this.#lent) if (lending.key === wanted) return lending;
    return undefined;
  }
}

function keyOf(conversationId: unknown): string | undefined {
  return typeof conversationId === "string" ? keyOfConversation(conversationId) : undefined;
}

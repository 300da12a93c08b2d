/** Converts a MAIL message to a MAP one, and an answer back (decision F5). */

import { isRecord } from "../../../base/index.js";
import { conversationIdOf, SYSTEM, toPlainText } from "../../../conversations/index.js";
import type { LentMessage, TurnResult } from "../../../engine/index.js";
import type { MAILAddress } from "../../../mail/index.js";
import { type Address, namedRecipients } from "../addresses.js";
import type { Message } from "../message-router.js";

export function deliveryOf({ agent, key, attempt, message, task, tools }: LentMessage): Message {
  const { subject, body, sender } = message.message;
  return {
    id: message.id,
    from: nameOf(sender),
    to: { agent },
    timestamp: Date.parse(message.timestamp),
    payload: { type: message.msg_type, subject, body },
    meta: {
      correlationId: message.id,
      mail: { conversationId: conversationIdOf(key) },
      // For `mailroom/answer`.
      _meta: { attempt, taskId: task.id, tools: tools.map(({ name }) => name) },
    },
  };
}

/** The one agent or participant that an address names. */
export function targetOf(address: Address): string | undefined {
  const [first, ...others] = namedRecipients(address);
  return others.length === 0 ? first : undefined;
}

/**
 * A plain reply: a response to the sender, or a request to any other agent. The engine checks comm targets.
 * Replies to users and to the system become the agent's text answer.
 */
export function plainAnswer(
  lending: LentMessage,
  target: string,
  payload: unknown,
  callId: string,
): TurnResult {
  const { sender, subject } = lending.message.message;
  const body = bodyOf(payload);
  const replies = target === nameOf(sender);
  if (replies && sender.address_type !== "agent") return { text: body, calls: [] };
  const given = isRecord(payload) && typeof payload.subject === "string" ? payload.subject : undefined;
  const args = { target, subject: given ?? `Re: ${subject}`, body };
  return { calls: [{ id: callId, name: replies ? "send_response" : "send_request", args }] };
}

function bodyOf(payload: unknown): string {
  if (isRecord(payload) && typeof payload.body === "string") return payload.body;
  return toPlainText(payload) ?? JSON.stringify(payload ?? null);
}

/** The MAP address of a MAIL sender. */
function nameOf({ address_type, address }: MAILAddress): string {
  switch (address_type) {
    case "agent":
      return address;
    case "system":
      return SYSTEM;
    case "user":
    case "admin":
      return `${address_type}:${address}`;
    default:
      return address_type satisfies never;
  }
}

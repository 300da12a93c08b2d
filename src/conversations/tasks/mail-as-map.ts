/** A MAIL message as a MAP one, and an answer the other way (decisions F5). */
import type { AgentAnswer } from "../../engine/agent.js";
import type { Lending } from "../../engine/runtime/index.js";
import type { MAILAddress } from "../../mail/message.js";
import { textOf } from "../domain/content.js";
import { type Address, namedIn } from "../server/addresses.js";
import type { Message } from "../server/messages.js";
import { isRecord } from "../server/rpc.js";
import { conversationIdOf, SYSTEM } from "./derive.js";

export function deliveryOf({ agent, key, attempt, message, task, tools }: Lending): Message {
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
      // What `mailroom/answer` needs.
      _meta: { attempt, taskId: task.id, tools: tools.map(({ name }) => name) },
    },
  };
}

/** The one agent or participant that an address names. */
export function targetOf(address: Address): string | undefined {
  const [first, ...others] = namedIn(address);
  return others.length === 0 ? first : undefined;
}

/**
 * A plain reply: a response to who sent the message, a request to any other agent. Whom the agent may write to, the
 * engine decides. People and the system are not written to but answered, which is the engine's to do.
 */
export function plainAnswer(lending: Lending, target: string, payload: unknown, callId: string): AgentAnswer {
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
  return textOf(payload) ?? JSON.stringify(payload ?? null);
}

/** Somebody who can be answered. */
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

/**
 * A message of ours as it goes to another swarm: valid by the published schemas, and with what other implementations
 * demand beyond them (mail.md 1.8, Appendix A).
 */
import { createAgentAddress, formatAgentAddress, parseAgentAddress } from "../../mail/address.js";
import type { MAILAddress, MAILInterswarmMessage, MAILMessage } from "../../mail/message.js";
import { MOST_CONTRIBUTORS } from "../../mail/owner.js";
import { SYSTEM_SUBJECTS } from "../../mail/subjects.js";

export interface WrapperParts {
  readonly message: MAILMessage;
  readonly source: string;
  readonly target: string;
  readonly owner: string;
  readonly contributors: readonly string[];
  readonly hops: number;
}

const EVENTS: ReadonlyMap<string, string> = new Map([
  [SYSTEM_SUBJECTS.taskComplete, "task_complete"],
  [SYSTEM_SUBJECTS.taskCancelled, "task_cancelled"],
  [SYSTEM_SUBJECTS.taskError, "task_error"],
]);

/** @throws Error for a completion: that one never leaves as such (mail.md 14 #31). */
export function buildWrapper(parts: WrapperParts): MAILInterswarmMessage {
  const { message, source, target, owner, hops } = parts;
  const { subject } = message.message;
  const event = message.msg_type === "response" ? EVENTS.get(subject) : undefined;
  const common = {
    message_id: message.id,
    source_swarm: source,
    target_swarm: target,
    timestamp: message.timestamp,
    task_owner: owner,
    // More are refused, and with them the message.
    task_contributors: [...new Set([owner, ...parts.contributors])].slice(0, MOST_CONTRIBUTORS),
    // Demanded by the reference; a real token has no business in a body (mail.md 7.10).
    auth_token: "",
    metadata: { hops, ...(event !== undefined && { mail_event: event }) },
  };
  const routing_info = { ...message.message.routing_info, remote_swarm: target, hops };
  const sender = exportedSender(message.message.sender, source);
  const toOne = { sender, sender_swarm: source, recipient_swarm: target, routing_info };
  const toMany = { sender, sender_swarm: source, recipient_swarms: [target], routing_info };
  switch (message.msg_type) {
    case "request": {
      const recipient = exportedRecipient(message.message.recipient, target);
      return { ...common, msg_type: "request", payload: { ...message.message, ...toOne, recipient } };
    }
    case "response": {
      const recipient = exportedRecipient(message.message.recipient, target);
      return { ...common, msg_type: "response", payload: { ...message.message, ...toOne, recipient } };
    }
    case "broadcast": {
      const recipients = recipientsIn(message.message.recipients, target);
      return { ...common, msg_type: "broadcast", payload: { ...message.message, ...toMany, recipients } };
    }
    case "interrupt": {
      const recipients = recipientsIn(message.message.recipients, target);
      return { ...common, msg_type: "interrupt", payload: { ...message.message, ...toMany, recipients } };
    }
    case "broadcast_complete":
      throw new Error("a completion crosses swarms as a response, never as broadcast_complete");
  }
}

/** Whoever sends, the other side sees an agent of this swarm, as it does with the reference. */
function exportedSender(sender: MAILAddress, source: string): MAILAddress {
  const name =
    sender.address_type === "agent" ? parseAgentAddress(sender.address).name : exportedName(sender.address);
  return createAgentAddress(formatAgentAddress(name, source));
}

/** A person's id as the name of an agent: without the characters that part names from swarms and roles. */
export function exportedName(id: string): string {
  return id.replaceAll(/[@:\s]/gu, "_");
}

function exportedRecipient(recipient: MAILAddress, target: string): MAILAddress {
  return createAgentAddress(formatAgentAddress(parseAgentAddress(recipient.address).name, target));
}

/** Each swarm gets its own recipients: what else the message was sent to is none of its business. */
function recipientsIn(recipients: readonly MAILAddress[], target: string): MAILAddress[] {
  return recipients
    .filter(({ address }) => parseAgentAddress(address).swarm === target)
    .map((recipient) => exportedRecipient(recipient, target));
}

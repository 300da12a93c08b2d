/**
 * Wraps a local message for another swarm: valid by the published schemas, with the additional fields that other
 * implementations require (REF-11, REF-14).
 */

import type { MAILAddress, MAILInterswarmMessage, MAILMessage } from "../../mail/index.js";
import {
  createAgentAddress,
  formatAgentAddress,
  MOST_CONTRIBUTORS,
  parseAgentAddress,
  SYSTEM_SUBJECTS,
} from "../../mail/index.js";

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

/**
 *
 * @throws Error for a completion: it is sent as a response instead (REF-12)
 */
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
    // The peer rejects a message with more.
    task_contributors: [...new Set([owner, ...parts.contributors])].slice(0, MOST_CONTRIBUTORS),
    // The reference requires the field; a real token is never sent in a body (REF-11).
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

/** Every sender appears as an agent of this swarm, as in the reference. */
function exportedSender(sender: MAILAddress, source: string): MAILAddress {
  const name =
    sender.address_type === "agent" ? parseAgentAddress(sender.address).name : exportedName(sender.address);
  return createAgentAddress(formatAgentAddress(name, source));
}

/** Turns a user's id into an agent name, without the characters that separate names, swarms and roles. */
export function exportedName(id: string): string {
  return id.replaceAll(/[@:\s]/gu, "_");
}

function exportedRecipient(recipient: MAILAddress, target: string): MAILAddress {
  return createAgentAddress(formatAgentAddress(parseAgentAddress(recipient.address).name, target));
}

/** A swarm sees only its own recipients. */
function recipientsIn(recipients: readonly MAILAddress[], target: string): MAILAddress[] {
  return recipients
    .filter(({ address }) => parseAgentAddress(address).swarm === target)
    .map((recipient) => exportedRecipient(recipient, target));
}

/**
 * Validates a message from another swarm. Pure: decides by the wrapper, the authenticated peer and the local swarm's
 * name. `Inbound` finds the task afterwards.
 */

import { isUuid, MailroomError } from "../../base/index.js";
import { isErrorSubject } from "../../engine/index.js";
import {
  checkTaskContributor,
  createAgentAddress,
  formatAgentAddress,
  isSystemSubject,
  MAIL_ALL_LOCAL_AGENTS,
  type MAILAddress,
  type MAILInterswarmMessage,
  type MAILMessage,
  MOST_CONTRIBUTORS,
  parseAgentAddress,
  parseTaskContributor,
  SYSTEM_SUBJECTS,
  type TaskContributor,
} from "../../mail/index.js";

export type EndingNotice = "completed" | "cancelled" | "failed";

/** A wrapper that passed validation. */
export interface ValidMessage {
  readonly peer: string;
  readonly taskId: string;
  readonly owner: TaskContributor;
  readonly ownerText: string;
  /**
   * Valid contributors, including the owner. Other contributors of the local swarm are dropped: only this server
   * decides who they are.
   */
  readonly contributors: readonly string[];
  /** With a qualified sender and local recipient names. */
  readonly message: MAILMessage;
  /** Local names, possibly `all`. The recipient of an ending may be unknown. */
  readonly names: readonly string[];
  /** How the task ended at the peer, if the message says so. */
  readonly ending: EndingNotice | undefined;
}

export interface ValidationContext {
  /** The swarm that the token belongs to. */
  readonly peer: string;
  readonly local: string;
  readonly maxHops: number;
}

const ENDINGS: ReadonlyMap<string, EndingNotice> = new Map([
  [SYSTEM_SUBJECTS.taskComplete, "completed"],
  [SYSTEM_SUBJECTS.taskCancelled, "cancelled"],
  [SYSTEM_SUBJECTS.taskError, "failed"],
]);

const LONGEST_ID = 256;

/** @throws MailroomError */
export function validate(
  wrapper: MAILInterswarmMessage,
  { peer, local, maxHops }: ValidationContext,
): ValidMessage {
  const { payload, source_swarm, target_swarm } = wrapper;
  // Token, source and sender must name the same swarm (decision E1).
  if (source_swarm !== peer) throw peerMismatch(`source_swarm is '${source_swarm}'`, peer);
  const { swarm: senderSwarm = peer } = parseAgentAddress(payload.sender.address);
  if (payload.sender.address_type === "agent" && senderSwarm !== peer) {
    throw peerMismatch(`the sender is '${payload.sender.address}'`, peer);
  }
  if (payload.sender_swarm !== undefined && payload.sender_swarm !== peer) {
    throw peerMismatch(`sender_swarm is '${payload.sender_swarm}'`, peer);
  }
  if (target_swarm !== local) {
    throw new MailroomError("wrong_swarm", `this is swarm '${local}', not '${target_swarm}'`);
  }
  if (peer === local) throw new MailroomError("wrong_swarm", "a swarm cannot send mail to itself over HTTP");
  if (wrapper.message_id.length > LONGEST_ID || payload.task_id.length > LONGEST_ID) {
    throw new MailroomError("bad_wrapper", `ids have at most ${LONGEST_ID} characters`);
  }
  const owner = readOwner(wrapper.task_owner);
  const hops = hopsOf(wrapper);
  if (hops > maxHops) {
    throw new MailroomError(
      "too_many_hops",
      `the message has passed through ${hops} swarms; the limit is ${maxHops}`,
    );
  }
  const message = localMessage(wrapper, peer, local, hops);
  return {
    peer,
    taskId: payload.task_id,
    owner,
    ownerText: wrapper.task_owner,
    contributors: readContributors(wrapper, local),
    message,
    names: namesIn(message),
    ending: wrapper.msg_type === "response" ? ENDINGS.get(payload.subject) : undefined,
  };
}

/** Two fields carry the hop count; a peer that sends none is one hop away (decision E9). */
export function hopsOf({ metadata, payload }: MAILInterswarmMessage): number {
  const counts = [metadata?.hops, payload.routing_info?.hops].filter(
    (value): value is number => typeof value === "number" && Number.isFinite(value) && value >= 1,
  );
  return Math.max(1, ...counts.map(Math.floor));
}

function readOwner(text: string): TaskContributor {
  const wrong = checkTaskContributor(text);
  if (wrong !== undefined)
    throw new MailroomError("bad_wrapper", `task_owner ${JSON.stringify(text)} ${wrong}`);
  return parseTaskContributor(text);
}

function readContributors({ task_contributors, task_owner }: MAILInterswarmMessage, local: string): string[] {
  if (task_contributors.length > MOST_CONTRIBUTORS) {
    throw new MailroomError("bad_wrapper", `task_contributors has more than ${MOST_CONTRIBUTORS} entries`);
  }
  const kept = new Set([task_owner]);
  for (const text of task_contributors) {
    const wrong = checkTaskContributor(text);
    if (wrong !== undefined) {
      throw new MailroomError("bad_wrapper", `task_contributors: ${JSON.stringify(text)} ${wrong}`);
    }
    if (parseTaskContributor(text).swarm !== local) kept.add(text);
  }
  return [...kept];
}

/** The message as local agents receive it. Every sender becomes an agent of the peer. */
function localMessage(
  wrapper: MAILInterswarmMessage,
  peer: string,
  local: string,
  hops: number,
): MAILMessage {
  const { name } = parseAgentAddress(wrapper.payload.sender.address);
  const sender = createAgentAddress(formatAgentAddress(name, peer));
  const facts = {
    subject: escapeSystemSubject(wrapper.payload.subject),
    sender,
    sender_swarm: peer,
    routing_info: { ...wrapper.payload.routing_info, hops },
  };
  const envelope = { id: envelopeId(wrapper), timestamp: wrapper.timestamp };
  switch (wrapper.msg_type) {
    case "request": {
      const recipient = localRecipient(wrapper.payload.recipient, local);
      const message = { ...wrapper.payload, ...facts, recipient, recipient_swarm: local };
      return { ...envelope, msg_type: "request", message };
    }
    case "response": {
      const recipient = localRecipient(wrapper.payload.recipient, local);
      const message = { ...wrapper.payload, ...facts, recipient, recipient_swarm: local };
      return { ...envelope, msg_type: "response", message };
    }
    case "broadcast": {
      const recipients = localRecipients(wrapper.payload.recipients, local);
      const message = { ...wrapper.payload, ...facts, recipients, recipient_swarms: [local] };
      return { ...envelope, msg_type: "broadcast", message };
    }
    case "interrupt": {
      const recipients = localRecipients(wrapper.payload.recipients, local);
      const message = { ...wrapper.payload, ...facts, recipients, recipient_swarms: [local] };
      return { ...envelope, msg_type: "interrupt", message };
    }
  }
}

/**
 * Removes the colons from system subjects that the engine acts on: only the local system may send them. Errors and
 * endings reported by a peer stay as they are.
 */
function escapeSystemSubject(subject: string): string {
  if (!isSystemSubject(subject) || ENDINGS.has(subject) || isErrorSubject(subject)) return subject;
  return subject.slice(2, -2);
}

/** An envelope's id must be a UUID, a wrapper's need not be: fall back to the payload's id. */
function envelopeId({ message_id, payload }: MAILInterswarmMessage): string {
  if (isUuid(message_id)) return message_id;
  if ("broadcast_id" in payload) return payload.broadcast_id;
  if ("interrupt_id" in payload) return payload.interrupt_id;
  if (isUuid(payload.request_id)) return payload.request_id;
  throw new MailroomError("bad_wrapper", "message_id must be a UUID");
}

function localRecipient(recipient: MAILAddress, local: string): MAILAddress {
  const { name, swarm } = parseAgentAddress(recipient.address);
  if (swarm !== undefined && swarm !== local) {
    throw new MailroomError("wrong_swarm", `'${recipient.address}' is not an agent of swarm '${local}'`);
  }
  return createAgentAddress(name);
}

/** Keeps only the recipients in the local swarm. */
function localRecipients(recipients: readonly MAILAddress[], local: string): MAILAddress[] {
  const ours = recipients.filter(({ address }) => (parseAgentAddress(address).swarm ?? local) === local);
  if (ours.length === 0) throw new MailroomError("wrong_swarm", `no recipient belongs to swarm '${local}'`);
  return ours.map((recipient) => localRecipient(recipient, local));
}

function namesIn(message: MAILMessage): string[] {
  const addresses = "recipient" in message.message ? [message.message.recipient] : message.message.recipients;
  return [...new Set(addresses.map(({ address }) => address))];
}

/** Resolves names to local agents. @throws MailroomError `unknown_recipient` */
export function expandNames(names: readonly string[], agents: ReadonlySet<string>): string[] {
  const to = new Set<string>();
  for (const name of names) {
    if (name === MAIL_ALL_LOCAL_AGENTS) for (const agent of agents) to.add(agent);
    else if (agents.has(name)) to.add(name);
    else throw new MailroomError("unknown_recipient", `unknown local agent: '${name}'`);
  }
  return [...to];
}

function peerMismatch(what: string, peer: string): MailroomError {
  return new MailroomError("peer_mismatch", `${what}, but the token belongs to swarm '${peer}'`);
}

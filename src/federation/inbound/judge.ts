/**
 * What a message from another swarm says, and whether it may say so. Pure: it decides by the wrapper, the name of the
 * authenticated peer and the names of the agents; which task it belongs to is found out afterwards.
 */

import { isErrorSubject } from "../../engine/system-messages.js";
import { createAgentAddress, formatAgentAddress, parseAgentAddress } from "../../mail/address.js";
import {
  MAIL_ALL_LOCAL_AGENTS,
  type MAILAddress,
  type MAILInterswarmMessage,
  type MAILMessage,
} from "../../mail/message.js";
import {
  checkTaskContributor,
  MOST_CONTRIBUTORS,
  parseTaskContributor,
  type TaskContributor,
} from "../../mail/owner.js";
import { isSystemSubject, SYSTEM_SUBJECTS } from "../../mail/subjects.js";
import { isUuid } from "../../mail/uuid.js";
import { FederationError } from "../errors.js";

export type Ending = "completed" | "cancelled" | "failed";

/** A wrapper that was found to be in order. */
export interface Arrival {
  readonly peer: string;
  readonly taskId: string;
  readonly owner: TaskContributor;
  readonly ownerText: string;
  /** Well-formed, the owner among them, and nobody of this swarm but the owner: who of us contributes, we decide. */
  readonly contributors: readonly string[];
  /** With the sender qualified and the recipients by their local names. */
  readonly message: MAILMessage;
  /** Local names, `all` among them perhaps; of one recipient of an ending it may be a name that nobody has. */
  readonly names: readonly string[];
  /** Whether the other swarm says with it that the task has ended there. */
  readonly ending: Ending | undefined;
}

export interface JudgeContext {
  /** Whose token was shown. */
  readonly peer: string;
  readonly local: string;
  readonly maxHops: number;
}

const ENDINGS: ReadonlyMap<string, Ending> = new Map([
  [SYSTEM_SUBJECTS.taskComplete, "completed"],
  [SYSTEM_SUBJECTS.taskCancelled, "cancelled"],
  [SYSTEM_SUBJECTS.taskError, "failed"],
]);

const LONGEST_ID = 256;

/** @throws FederationError */
export function judge(wrapper: MAILInterswarmMessage, { peer, local, maxHops }: JudgeContext): Arrival {
  const { payload, source_swarm, target_swarm } = wrapper;
  // Decisions E1: token, source and sender must name the same swarm.
  if (source_swarm !== peer) throw mismatch(`source_swarm is '${source_swarm}'`, peer);
  const { swarm: senderSwarm = peer } = parseAgentAddress(payload.sender.address);
  if (payload.sender.address_type === "agent" && senderSwarm !== peer) {
    throw mismatch(`the sender is '${payload.sender.address}'`, peer);
  }
  if (payload.sender_swarm !== undefined && payload.sender_swarm !== peer) {
    throw mismatch(`sender_swarm is '${payload.sender_swarm}'`, peer);
  }
  if (target_swarm !== local) {
    throw new FederationError("wrong_swarm", `this is swarm '${local}', not '${target_swarm}'`);
  }
  if (peer === local) throw new FederationError("wrong_swarm", "a swarm does not send itself mail over HTTP");
  if (wrapper.message_id.length > LONGEST_ID || payload.task_id.length > LONGEST_ID) {
    throw new FederationError("bad_wrapper", `ids have at most ${LONGEST_ID} characters`);
  }
  const owner = readOwner(wrapper.task_owner);
  const hops = hopsOf(wrapper);
  if (hops > maxHops) {
    throw new FederationError(
      "too_many_hops",
      `the message has come through ${hops} swarms, and ${maxHops} is the limit: it goes round in circles`,
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

/** Decisions E9: it travels in two places; a peer that does not count is one hop away. */
export function hopsOf({ metadata, payload }: MAILInterswarmMessage): number {
  const counts = [metadata?.hops, payload.routing_info?.hops].filter(
    (value): value is number => typeof value === "number" && Number.isFinite(value) && value >= 1,
  );
  return Math.max(1, ...counts.map(Math.floor));
}

function readOwner(text: string): TaskContributor {
  const wrong = checkTaskContributor(text);
  if (wrong !== undefined)
    throw new FederationError("bad_wrapper", `task_owner ${JSON.stringify(text)} ${wrong}`);
  return parseTaskContributor(text);
}

function readContributors({ task_contributors, task_owner }: MAILInterswarmMessage, local: string): string[] {
  if (task_contributors.length > MOST_CONTRIBUTORS) {
    throw new FederationError("bad_wrapper", `task_contributors has more than ${MOST_CONTRIBUTORS} entries`);
  }
  const kept = new Set([task_owner]);
  for (const text of task_contributors) {
    const wrong = checkTaskContributor(text);
    if (wrong !== undefined) {
      throw new FederationError("bad_wrapper", `task_contributors: ${JSON.stringify(text)} ${wrong}`);
    }
    if (parseTaskContributor(text).swarm !== local) kept.add(text);
  }
  return [...kept];
}

/** The message as our agents get it. Whoever it was over there, here it is an agent of that swarm. */
function localMessage(
  wrapper: MAILInterswarmMessage,
  peer: string,
  local: string,
  hops: number,
): MAILMessage {
  const { name } = parseAgentAddress(wrapper.payload.sender.address);
  const sender = createAgentAddress(formatAgentAddress(name, peer));
  const facts = {
    subject: harmlessSubject(wrapper.payload.subject),
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
 * Some subjects of the system mean something to the engine beside being read. They are the local system's alone; errors
 * and endings that another swarm reports are news like any other.
 */
function harmlessSubject(subject: string): string {
  if (!isSystemSubject(subject) || ENDINGS.has(subject) || isErrorSubject(subject)) return subject;
  return subject.slice(2, -2);
}

/** An envelope's id is a UUID; a wrapper's need not be, so then the payload's own stands in. */
function envelopeId({ message_id, payload }: MAILInterswarmMessage): string {
  if (isUuid(message_id)) return message_id;
  if ("broadcast_id" in payload) return payload.broadcast_id;
  if ("interrupt_id" in payload) return payload.interrupt_id;
  if (isUuid(payload.request_id)) return payload.request_id;
  throw new FederationError("bad_wrapper", "message_id must be a UUID");
}

function localRecipient(recipient: MAILAddress, local: string): MAILAddress {
  const { name, swarm } = parseAgentAddress(recipient.address);
  if (swarm !== undefined && swarm !== local) {
    throw new FederationError("wrong_swarm", `'${recipient.address}' is not an agent of swarm '${local}'`);
  }
  return createAgentAddress(name);
}

/** Of a message to several swarms, only our part concerns us. */
function localRecipients(recipients: readonly MAILAddress[], local: string): MAILAddress[] {
  const ours = recipients.filter(({ address }) => (parseAgentAddress(address).swarm ?? local) === local);
  if (ours.length === 0) throw new FederationError("wrong_swarm", `no recipient is of swarm '${local}'`);
  return ours.map((recipient) => localRecipient(recipient, local));
}

function namesIn(message: MAILMessage): string[] {
  const addresses = "recipient" in message.message ? [message.message.recipient] : message.message.recipients;
  return [...new Set(addresses.map(({ address }) => address))];
}

/** Local agents that the names stand for. @throws FederationError `unknown_recipient` */
export function expandNames(names: readonly string[], agents: ReadonlySet<string>): string[] {
  const to = new Set<string>();
  for (const name of names) {
    if (name === MAIL_ALL_LOCAL_AGENTS) for (const agent of agents) to.add(agent);
    else if (agents.has(name)) to.add(name);
    else throw new FederationError("unknown_recipient", `unknown local agent: '${name}'`);
  }
  return [...to];
}

function mismatch(what: string, peer: string): FederationError {
  return new FederationError("peer_mismatch", `${what}, but the token is that of swarm '${peer}'`);
}

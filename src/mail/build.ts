/**
 * Builds messages. Ids and times are parameters, so the same input always gives the same message. This is a hot path:
 * plain objects, and no key without a value.
 */
import { createAgentAddress, createSystemAddress } from "./address.js";
import type {
  MAILAddress,
  MAILBroadcast,
  MAILInterrupt,
  MAILMessageOf,
  MAILRequest,
  MAILResponse,
} from "./message.js";
import { MAIL_ALL_LOCAL_AGENTS } from "./names.js";
import { SYSTEM_SUBJECTS } from "./subjects.js";

interface Common {
  /** UUID of the envelope. */
  readonly id: string;
  /** RFC 3339, as returned by `Date.prototype.toISOString`. */
  readonly timestamp: string;
  readonly taskId: string;
  readonly subject: string;
  readonly body: string;
}

interface Routing {
  readonly sender: MAILAddress;
  readonly senderSwarm?: string;
  readonly routingInfo?: Readonly<Record<string, unknown>>;
}

interface ToOne extends Common, Routing {
  readonly recipient: MAILAddress;
  readonly recipientSwarm?: string;
}

interface ToMany extends Common, Routing {
  readonly recipients: readonly MAILAddress[];
  readonly recipientSwarms?: readonly string[];
}

export interface RequestParts extends ToOne {
  /** The id that a response refers to. Default: the envelope's id. */
  readonly requestId?: string;
}

export interface ResponseParts extends ToOne {
  /** The answered request. */
  readonly requestId: string;
}

export interface BroadcastParts extends Omit<ToMany, "recipients"> {
  /** Default: every agent of the local swarm. */
  readonly recipients?: readonly MAILAddress[];
  readonly broadcastId?: string;
}

export interface InterruptParts extends ToMany {
  readonly interruptId?: string;
}

export interface CompleteParts extends Omit<Common, "subject" | "body"> {
  readonly sender: MAILAddress;
  readonly swarm: string;
  readonly finishMessage: string;
}

interface SystemParts extends Common {
  /** The local swarm, which is also the system's address. */
  readonly swarm: string;
}

export interface SystemResponseParts extends SystemParts {
  readonly recipient: MAILAddress;
  readonly requestId?: string;
  readonly routingInfo?: Readonly<Record<string, unknown>>;
}

export interface SystemBroadcastParts extends SystemParts {
  readonly recipients?: readonly MAILAddress[];
}

export type SystemCompleteParts = SystemParts;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** MAIL: Special agent `all`. */
export function allLocalAgents(): readonly MAILAddress[] {
  return [createAgentAddress(MAIL_ALL_LOCAL_AGENTS)];
}

/**
 * Makes a request.
 *
 * @example
 * buildRequest({
 *   id,
 *   timestamp: "2026-01-01T12:00:00Z",
 *   taskId,
 *   sender: createUserAddress("ann"),
 *   recipient: createAgentAddress("desk"),
 *   subject: "Hello",
 *   body: "Is anyone there?",
 * });
 */
export function buildRequest(parts: RequestParts): MAILMessageOf<"request"> {
  const message: Mutable<MAILRequest> = {
    task_id: parts.taskId,
    request_id: parts.requestId ?? parts.id,
    sender: parts.sender,
    recipient: parts.recipient,
    subject: parts.subject,
    body: parts.body,
  };
  addOptionalOne(message, parts);
  return { id: parts.id, timestamp: parts.timestamp, message, msg_type: "request" };
}

/** Makes a response. */
export function buildResponse(parts: ResponseParts): MAILMessageOf<"response"> {
  const message: Mutable<MAILResponse> = {
    task_id: parts.taskId,
    request_id: parts.requestId,
    sender: parts.sender,
    recipient: parts.recipient,
    subject: parts.subject,
    body: parts.body,
  };
  addOptionalOne(message, parts);
  return { id: parts.id, timestamp: parts.timestamp, message, msg_type: "response" };
}

/** Makes a broadcast. */
export function buildBroadcast(parts: BroadcastParts): MAILMessageOf<"broadcast"> {
  return {
    id: parts.id,
    timestamp: parts.timestamp,
    message: broadcastPayload(parts),
    msg_type: "broadcast",
  };
}

/** Makes an interrupt. */
export function buildInterrupt(parts: InterruptParts): MAILMessageOf<"interrupt"> {
  const message: Mutable<MAILInterrupt> = {
    task_id: parts.taskId,
    interrupt_id: parts.interruptId ?? parts.id,
    sender: parts.sender,
    recipients: parts.recipients,
    subject: parts.subject,
    body: parts.body,
  };
  addOptionalMany(message, parts);
  return { id: parts.id, timestamp: parts.timestamp, message, msg_type: "interrupt" };
}

/** MAIL: `task_complete`. The end of a task, sent to agent `all`. */
export function buildComplete(parts: CompleteParts): MAILMessageOf<"broadcast_complete"> {
  return {
    id: parts.id,
    timestamp: parts.timestamp,
    message: {
      task_id: parts.taskId,
      broadcast_id: parts.id,
      sender: parts.sender,
      recipients: allLocalAgents(),
      subject: SYSTEM_SUBJECTS.taskComplete,
      body: parts.finishMessage,
      sender_swarm: parts.swarm,
      recipient_swarms: [parts.swarm],
    },
    msg_type: "broadcast_complete",
  };
}

/** MAIL: Error Handling, Runtime 1. A notice of the system to the affected agent. */
export function buildSystemResponse(parts: SystemResponseParts): MAILMessageOf<"response"> {
  const message: Mutable<MAILResponse> = {
    task_id: parts.taskId,
    request_id: parts.requestId ?? parts.id,
    sender: createSystemAddress(parts.swarm),
    recipient: parts.recipient,
    subject: parts.subject,
    body: parts.body,
    sender_swarm: parts.swarm,
    recipient_swarm: parts.swarm,
  };
  if (parts.routingInfo !== undefined) message.routing_info = parts.routingInfo;
  return { id: parts.id, timestamp: parts.timestamp, message, msg_type: "response" };
}

/** MAIL: Error Handling, Runtime 2. A notice of the system to several agents, or to all. */
export function buildSystemBroadcast(parts: SystemBroadcastParts): MAILMessageOf<"broadcast"> {
  return {
    id: parts.id,
    timestamp: parts.timestamp,
    message: systemBroadcast(parts, parts.recipients ?? allLocalAgents()),
    msg_type: "broadcast",
  };
}

/** MAIL: Error Handling, Runtime 3. The system ends the task. */
export function buildSystemComplete(parts: SystemCompleteParts): MAILMessageOf<"broadcast_complete"> {
  return {
    id: parts.id,
    timestamp: parts.timestamp,
    message: systemBroadcast(parts, allLocalAgents()),
    msg_type: "broadcast_complete",
  };
}

function systemBroadcast(parts: SystemParts, recipients: readonly MAILAddress[]): MAILBroadcast {
  return {
    task_id: parts.taskId,
    broadcast_id: parts.id,
    sender: createSystemAddress(parts.swarm),
    recipients,
    subject: parts.subject,
    body: parts.body,
    sender_swarm: parts.swarm,
    recipient_swarms: [parts.swarm],
  };
}

function broadcastPayload(parts: BroadcastParts): MAILBroadcast {
  const message: Mutable<MAILBroadcast> = {
    task_id: parts.taskId,
    broadcast_id: parts.broadcastId ?? parts.id,
    sender: parts.sender,
    recipients: parts.recipients ?? allLocalAgents(),
    subject: parts.subject,
    body: parts.body,
  };
  addOptionalMany(message, parts);
  return message;
}

function addOptionalOne(message: Mutable<MAILRequest> | Mutable<MAILResponse>, parts: ToOne): void {
  if (parts.senderSwarm !== undefined) message.sender_swarm = parts.senderSwarm;
  if (parts.recipientSwarm !== undefined) message.recipient_swarm = parts.recipientSwarm;
  if (parts.routingInfo !== undefined) message.routing_info = parts.routingInfo;
}

function addOptionalMany(
  message: Mutable<MAILBroadcast> | Mutable<MAILInterrupt>,
  parts: Omit<ToMany, "recipients">,
): void {
  if (parts.senderSwarm !== undefined) message.sender_swarm = parts.senderSwarm;
  if (parts.recipientSwarms !== undefined) message.recipient_swarms = parts.recipientSwarms;
  if (parts.routingInfo !== undefined) message.routing_info = parts.routingInfo;
}

/** Part of `evolve`: tracks unanswered requests, and the agents of other swarms that a task communicates with. */

import { ownValue } from "../../base/index.js";
import {
  FAILED_AGENT,
  formatAgentAddress,
  isInterswarmAddress,
  MAIL_ALL_LOCAL_AGENTS,
  type MAILMessage,
  type MAILResponse,
  parseAgentAddress,
  recipientsOf,
} from "../../mail/pure.js";
import type { Carried, Sent } from "./entries.js";
import {
  type OutboundMessage,
  type OutstandingRequest,
  partyOf,
  type RemoteAgentLink,
  type TaskState,
} from "./state.js";

/** Limit on tracked requests. Beyond it, the oldest ones count as abandoned. */
const MOST_OUTSTANDING = 1_000;

/**
 * A request stays outstanding until its sender gets an answer. So does every other message to another swarm, separately
 * for each recipient, because its sender may wait for an answer.
 *
 * Returns the request that a response settles.
 */
export function trackRequests(state: TaskState, entry: Sent): OutstandingRequest | undefined {
  const { message } = entry;
  const remote = entry.remote !== undefined;
  if (message.msg_type === "response") return settleRequest(state, message.message);
  const requestId = requestIdOf(message);
  const { sender } = message.message;
  if (requestId === undefined || sender.address_type === "system") return undefined;
  const from = partyOf(sender);
  const asker = sender.address_type === "agent" ? state.agents.get(sender.address)?.onBehalfOf : undefined;
  const known = asker !== undefined && { asker };
  if (message.msg_type === "request") {
    if (sender.address_type !== "agent" && !remote) return undefined;
    addRequest(state, { requestId, from, to: message.message.recipient.address, remote, ...known });
  } else if (remote) {
    for (const { address } of recipientsOf(message)) {
      if (!isInterswarmAddress(address, state.swarm)) continue;
      addRequest(state, { requestId, from, to: address, remote, ...known });
    }
  }
  return undefined;
}

function addRequest(state: TaskState, request: OutstandingRequest): void {
  state.outstanding.push(request);
  if (state.outstanding.length > MOST_OUTSTANDING) state.outstanding.shift();
}

function settleRequest(state: TaskState, response: MAILResponse): OutstandingRequest | undefined {
  const at = indexOfSettled(state, response);
  return at < 0 ? undefined : state.outstanding.splice(at, 1)[0];
}

/** Place of the request that a response answers, or -1. */
function indexOfSettled(
  state: TaskState,
  { recipient, sender, request_id, routing_info }: MAILResponse,
): number {
  const { outstanding } = state;
  const from = partyOf(recipient);
  const { swarm } = parseAgentAddress(sender.address);
  const allAgents = swarm === undefined ? undefined : formatAgentAddress(MAIL_ALL_LOCAL_AGENTS, swarm);
  const isFrom = ({ to }: OutstandingRequest) => to === sender.address || to === allAgents;
  // A notice of the system names the recipient from which no answer will come.
  const failed = sender.address_type === "system" ? routing_info?.[FAILED_AGENT] : undefined;
  let at = outstanding.findIndex(
    (request) => request.requestId === request_id && (isFrom(request) || request.to === failed),
  );
  // One agent may answer for another, and the system for an agent that will not answer. But a user's request to several
  // swarms has one id, and each swarm answers only for itself.
  const speaksFor = ({ to }: OutstandingRequest) =>
    sender.address_type === "system" ||
    (parseAgentAddress(to).swarm ?? state.swarm) === (swarm ?? state.swarm);
  if (at < 0) {
    at = outstanding.findIndex((request) => request.requestId === request_id && speaksFor(request));
  }
  // Other implementations answer with an id of their own: then the response answers the oldest request to its sender.
  if (at < 0) at = outstanding.findIndex((request) => request.from === from && isFrom(request));
  return at;
}

/** Messages whose answer has arrived before the outbox recorded their delivery. */
export function provenDeliveries(state: TaskState, message: MAILMessage): readonly OutboundMessage[] {
  if (state.outbound.length === 0 || message.msg_type !== "response") return [];
  const { swarm } = parseAgentAddress(message.message.sender.address);
  const request = state.outstanding[indexOfSettled(state, message.message)];
  if (request?.remote !== true) return [];
  return state.outbound.filter(
    (out) => out.swarm === swarm && requestIdOf(out.message) === request.requestId,
  );
}

/** Records a delivery: the answer is due from then on. An undelivered message gets no answer. */
export function noteCarried(state: TaskState, { message, swarm, ok, at }: Carried): void {
  const out = state.outbound.find((waiting) => waiting.message.id === message && waiting.swarm === swarm);
  const requestId = out === undefined ? undefined : requestIdOf(out.message);
  if (requestId === undefined) return;
  const isMeant = (request: OutstandingRequest) =>
    request.remote && request.requestId === requestId && parseAgentAddress(request.to).swarm === swarm;
  // The notice to the sender of a request settles it.
  if (!ok && out?.message.msg_type === "request") return;
  if (!ok) state.outstanding = state.outstanding.filter((request) => !isMeant(request));
  else for (const request of state.outstanding) if (isMeant(request)) request.acceptedAt = at;
}

/** The id that an answer to the message names. */
export function requestIdOf(message: Sent["message"]): string | undefined {
  if (message.msg_type === "request") return message.message.request_id;
  if (message.msg_type === "broadcast") return message.message.broadcast_id;
  return message.msg_type === "interrupt" ? message.message.interrupt_id : undefined;
}

/** Records which agent of another swarm must be notified when the task ends. */
export function trackPeers(state: TaskState, { message }: Sent): void {
  const { sender } = message.message;
  if (sender.address_type === "agent" && isInterswarmAddress(sender.address, state.swarm)) {
    const swarm = parseAgentAddress(sender.address).swarm ?? "";
    const asks = message.msg_type === "request";
    const hops = message.message.routing_info?.hops;
    setPeer(state, swarm, {
      address: sender.address,
      ...(asks && { requestId: message.message.request_id }),
      ...(typeof hops === "number" && { hops, number: state.number }),
    });
  } else {
    for (const { address } of recipientsOf(message)) {
      const { swarm } = parseAgentAddress(address);
      if (swarm === undefined || swarm === state.swarm) continue;
      const known = ownValue(state.peers, swarm);
      const answers = message.msg_type === "response" && known?.address === address;
      if (known === undefined) setPeer(state, swarm, { address });
      else if (answers) {
        const { requestId: _, ...rest } = known;
        setPeer(state, swarm, rest);
      }
    }
  }
}

function setPeer(state: TaskState, swarm: string, peer: RemoteAgentLink): void {
  state.peers = { ...state.peers, [swarm]: peer };
}

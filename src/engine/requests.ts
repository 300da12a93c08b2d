/** Part of `evolve`: who still owes whom an answer, and whom in other swarms a task has to do with. */
import { formatAgentAddress, isInterswarmAddress, parseAgentAddress } from "../mail/address.js";
import { MAIL_ALL_LOCAL_AGENTS, type MAILResponse } from "../mail/message.js";
import { ownValue } from "../mail/record.js";
import { recipientsOf } from "../mail/render.js";
import type { Sent } from "./entries.js";
import { isFromPerson, type OutstandingRequest, type Peer, partyOf, type TaskState } from "./state.js";

/** Requests that are remembered as unanswered; of more than that the oldest are taken for abandoned. */
const MOST_OUTSTANDING = 1_000;

/**
 * Requests between agents stay outstanding until somebody answers the agent that asked; so does what a person wrote
 * to other swarms, each recipient by itself.
 */
export function trackRequests(state: TaskState, entry: Sent): void {
  const { message } = entry;
  const remote = entry.remote !== undefined;
  if (message.msg_type === "request") {
    const { sender, recipient, request_id } = message.message;
    if (sender.address_type !== "agent" && !remote) return;
    addRequest(state, { requestId: request_id, from: partyOf(sender), to: recipient.address, remote });
  } else if (message.msg_type === "broadcast" && remote && isFromPerson(message)) {
    const { sender, recipients, broadcast_id } = message.message;
    for (const { address } of recipients) {
      if (!isInterswarmAddress(address, state.swarm)) continue;
      addRequest(state, { requestId: broadcast_id, from: partyOf(sender), to: address, remote });
    }
  } else if (message.msg_type === "response") {
    settleRequest(state, message.message);
  }
}

function addRequest(state: TaskState, request: OutstandingRequest): void {
  state.outstanding.push(request);
  if (state.outstanding.length > MOST_OUTSTANDING) state.outstanding.shift();
}

function settleRequest(state: TaskState, { recipient, sender, request_id }: MAILResponse): void {
  const { outstanding } = state;
  const from = partyOf(recipient);
  const { swarm } = parseAgentAddress(sender.address);
  const everybodyThere = swarm === undefined ? undefined : formatAgentAddress(MAIL_ALL_LOCAL_AGENTS, swarm);
  const isFrom = ({ to }: OutstandingRequest) => to === sender.address || to === everybodyThere;
  let at = outstanding.findIndex((request) => request.requestId === request_id && isFrom(request));
  // One agent may answer for another, and the system for those who will not; but what a person asked several swarms has
  // one id, and a swarm answers for itself alone.
  const speaksFor = ({ to }: OutstandingRequest) =>
    sender.address_type === "system" ||
    (parseAgentAddress(to).swarm ?? state.swarm) === (swarm ?? state.swarm);
  if (at < 0) {
    at = outstanding.findIndex((request) => request.requestId === request_id && speaksFor(request));
  }
  // Other implementations answer with an id of their own: then the oldest request to the sender is meant.
  if (at < 0) at = outstanding.findIndex((request) => request.from === from && isFrom(request));
  if (at >= 0) outstanding.splice(at, 1);
}

/** From now on the answer is due. */
export function noteAccepted(state: TaskState, messageId: string, at: number): void {
  const out = state.outbound.find(({ message }) => message.id === messageId);
  const requestId = out === undefined ? undefined : requestIdOf(out.message);
  if (requestId === undefined) return;
  for (const request of state.outstanding) {
    if (request.remote && request.requestId === requestId) request.acceptedAt = at;
  }
}

function requestIdOf(message: Sent["message"]): string | undefined {
  if (message.msg_type === "request") return message.message.request_id;
  return message.msg_type === "broadcast" ? message.message.broadcast_id : undefined;
}

/** Remembers whom in another swarm the end of the task is to be told. */
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

function setPeer(state: TaskState, swarm: string, peer: Peer): void {
  state.peers = { ...state.peers, [swarm]: peer };
}

/** Delivers outbox items: signs and sends the message, and classifies the response. */

import { isRecord, type RetryPolicy } from "../../base/index.js";

import type { RowWrite } from "../../journal/index.js";
import { NetError } from "../../net/index.js";
import {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  enqueue,
  type FinalOutcome,
  type OutboxFinish,
  type StoredItem,
} from "../../outbox/index.js";
import {
  asideKey,
  asideLane,
  MESH_QUEUE,
  type MeshContext,
  memberLane,
  type OutboundMessage,
} from "../context.js";
import { BROADCAST } from "../identity/agent-id.js";
import { proofsOf } from "../membership/handover.js";
import { announceMaster, completeTransfer } from "../membership/operations.js";
import { readSystemContent } from "../membership/system-content.js";
import type { HandoverProof } from "../membership/types.js";
import { signMessage, type UnsignedMessage } from "../message/build.js";
import type { MeshMessage } from "../message/types.js";
import { verifySignature } from "../signature.js";
import type { MeshRowWrite } from "../writes.js";
import { createPeers } from "./peers.js";

const BACKOFF: RetryPolicy = { base: 1_000, factor: 2, cap: 600_000, jitter: 0.25 };
/** Statuses that mean "try again later". */
const LATER = new Set([408, 425, 429, 500, 502, 503, 504]);

export function createDelivery(context: MeshContext): Dispatcher {
  const { store, clock, report, random } = context.parts;
  const dispatcher = new Dispatcher(
    { store, reads: store.outbox, clock, report, ...(random !== undefined && { random }) },
    {
      queue: MESH_QUEUE,
      backoff: BACKOFF,
      handler: (attempt) => deliver(context, attempt),
      settle: async (item, final, finish) => {
        const work = () => settle(context, item, final, finish);
        // Completing a transfer changes the membership.
        await (toOutboundMessage(item).completes === undefined ? work() : context.exclusive(work));
        if (final.outcome === "delivered" && context.heldBack.delete(item.target)) {
          dispatcher.retryNow(item.target);
        }
      },
    },
  );
  context.backlog = dispatcher.backlog;
  return dispatcher;
}

export function toOutboundMessage(item: StoredItem): OutboundMessage {
  // Written by this module with a checked type.
  return JSON.parse(item.payload);
}

/**
 * A lifecycle message may have overtaken the one that gives it authority, such as a new master's first kick. So a refusal
 * is not final for a while. Meanwhile the message is set aside: it must not delay what comes after it. The time begins
 * with the first refusal, because the peer may have been unreachable for days before.
 */
const SET_ASIDE = Symbol("set aside");

async function deliver(context: MeshContext, { item, signal }: Attempt): Promise<AttemptResult> {
  const { http, options, store } = context.parts;
  const outbound = toOutboundMessage(item);
  const { draft, recipientId } = outbound;
  // Members are called at their current endpoint; former members at the last known one.
  const swarm = context.view.swarms.get(draft.swarm_id);
  const member = swarm?.members.get(recipientId);
  if (outbound.completes !== undefined && (swarm?.master !== context.id || member === undefined)) {
    return { kind: "refused", reason: "the swarm has another master, or the member has left" };
  }
  if (outbound.completes !== undefined) {
    // The new master must know everything that this agent announced as the master.
    const first = await store.outbox.head(MESH_QUEUE, memberLane(draft.swarm_id, recipientId));
    if (first !== undefined && first.number < item.number) {
      context.heldBack.add(item.target);
      return { kind: "retry", reason: "earlier messages to the new master are delivered first" };
    }
  }
  if (swarm !== undefined && saysThatWeLeft(outbound) && swarm.joinedAt >= outbound.sentAt) {
    return { kind: "refused", reason: "this agent has since joined again" };
  }
  const endpoint = member?.endpoint ?? outbound.endpoint;
  const age = context.now - outbound.sentAt;
  // The clock may have been ahead when the message was sent.
  const signedAt = age >= 0 && age < options.resignAfter ? outbound.sentAt : context.now;
  const message =
    outbound.signed === undefined
      ? signMessage(draft, context.signer, signedAt)
      : refreshed(context, outbound.signed, outbound);
  try {
    const peers = createPeers(http, context.id, () => context.now);
    let answer = await peers.post(endpoint, "message", message, signal);
    if (outbound.signed === undefined) {
      // This message precedes the announcement of the new key, so the peer still has an older one.
      for (const former of context.formerSigners) {
        if (answer.status !== 401) break;
        answer = await peers.post(endpoint, "message", signMessage(draft, former, signedAt), signal);
      }
    }
    if (answer.status === 200 || answer.status === 202) {
      const unconfirmed = outbound.completes !== undefined && !saysAccepted(answer.value);
      return unconfirmed ? { kind: "refused", reason: NOT_TAKEN_OVER } : { kind: "delivered" };
    }
    if (LATER.has(answer.status)) {
      const after = answer.retryAfter;
      return {
        kind: "retry",
        reason: answer.reason,
        answered: true,
        ...(after !== undefined && { after }),
      };
    }
    if (isAboutTheClock(answer.value)) {
      return {
        kind: "retry",
        reason: `${answer.reason} (check the clocks)`,
        after: CLOCK_PAUSE,
        answered: true,
      };
    }
    const early = draft.type === "system" && (answer.status === 403 || answer.status === 404);
    if (!early || options.rejectionWindow === 0) return { kind: "refused", reason: answer.reason };
    // The recipient has left meanwhile: nothing will change its answer.
    if (outbound.aside === true && member === undefined) return { kind: "refused", reason: answer.reason };
    return outbound.aside === true
      ? { kind: "retry", reason: answer.reason, answered: true }
      : { kind: "refused", reason: answer.reason, note: SET_ASIDE };
  } catch (error) {
    if (!(error instanceof NetError) || error.code === "aborted") throw error;
    const hopeless = ["invalid_url", "insecure_url", "blocked_address"].includes(error.code);
    return hopeless ? { kind: "refused", reason: error.message } : { kind: "retry", reason: error.message };
  }
}

/** A clock that is wrong will be set right: the message is signed again then. */
const CLOCK_PAUSE = 60_000;

function isAboutTheClock(value: unknown): boolean {
  const error = isRecord(value) ? value.error : undefined;
  const details = isRecord(error) ? error.details : undefined;
  const reason = isRecord(details) ? details.reason : undefined;
  return reason === "timestamp_in_future" || reason === "timestamp_too_old";
}

function saysThatWeLeft({ draft }: OutboundMessage): boolean {
  const reading = draft.type === "system" ? readSystemContent(draft.content) : undefined;
  return reading !== undefined && "content" in reading && reading.content.action === "member_left";
}

/** Re-signs a pre-signed message with a fresh timestamp if it is due and its key is still available. */
function refreshed(
  context: MeshContext,
  signed: MeshMessage,
  { draft, sentAt }: OutboundMessage,
): MeshMessage {
  if (context.now - sentAt < context.parts.options.resignAfter) return signed;
  const signer = [context.signer, ...context.formerSigners].find(
    ({ pair }) => verifySignature(signed, signed.signature, pair.publicKey) === "valid",
  );
  return signer === undefined ? signed : signMessage(draft, signer, context.now);
}

/** Some peers store a transfer as an ordinary message: a swarm handed to one of them would have no acting master. */
const NOT_TAKEN_OVER =
  "the peer accepted the message but did not confirm that it is the master; its software may not support transfers";

function saysAccepted(value: unknown): boolean {
  return isRecord(value) && value.status === "accepted";
}

async function settle(
  context: MeshContext,
  item: StoredItem,
  final: FinalOutcome,
  finish: OutboxFinish,
): Promise<void> {
  const outbound = toOutboundMessage(item);
  const { draft, recipientId, completes } = outbound;
  if (final.note === SET_ASIDE) return setAside(context, item, final, finish);
  const isDelivered = final.outcome === "delivered";
  const mark: MeshRowWrite = {
    kind: "mesh.sent.mark",
    messageId: draft.message_id,
    recipientId,
    status: isDelivered ? "delivered" : "failed",
    at: final.at,
    ...(final.reason !== undefined && { error: final.reason }),
  };
  const completed =
    completes !== undefined && isDelivered
      ? completeTransfer(context.view, draft.swarm_id, context.id, {
          newMaster: completes.transferTo,
          now: context.now,
          prove: (content) => prove(context, draft.swarm_id, content),
        })
      : undefined;
  const { writes = [], announcements = [], event } = completed ?? {};
  const sends = announcements.flatMap((one) => context.outgoingRows(draft.swarm_id, one).rows);
  await context.commitOutcome(outbound, final, [finish, mark, ...writes, ...sends]);
  context.follow(writes);
  if (sends.length > 0) context.onOutgoing();
  if (event !== undefined) void context.recordEvent(draft.swarm_id, event);
  if (isDelivered) return;
  context.parts.report({
    code: "mesh_undelivered",
    message: `message ${draft.message_id} to ${recipientId} was not delivered: ${final.reason ?? final.outcome}`,
  });
}

/** Ends the item and continues with another in a lane of its own. For its sender the message is still waiting. */
async function setAside(
  context: MeshContext,
  item: StoredItem,
  { at, reason }: FinalOutcome,
  finish: OutboxFinish,
): Promise<void> {
  const { store, ids, options } = context.parts;
  const outbound = toOutboundMessage(item);
  const { draft, recipientId } = outbound;
  const { swarm_id: swarmId, message_id: messageId } = draft;
  const aside: OutboundMessage = { ...outbound, aside: true };
  const deadline = item.deadlineAt ?? at + options.deadline;
  const again = enqueue({
    queue: MESH_QUEUE,
    id: ids.ordered(),
    lane: asideLane(swarmId, recipientId, item.id),
    target: item.target,
    payload: JSON.stringify(aside),
    createdAt: item.createdAt,
    dueAt: at + BACKOFF.base,
    deadlineAt: Math.min(deadline, isAnnouncementOfMaster(draft) ? deadline : at + options.rejectionWindow),
    dedupeKey: asideKey(messageId, recipientId),
  });
  context.backlog.add(item.target);
  context.heldBack.add(item.target);
  await store.commit({ appends: [], rows: [finish, again, ...introductions(context, outbound)] }, "result");
  context.parts.report({
    code: "mesh_refused",
    message: `${recipientId} refused a lifecycle message, which is tried again later: ${reason ?? ""}`,
  });
  context.onOutgoing();
}

/** A member that refuses the master's announcements may have missed that this agent is the master. */
function introductions(context: MeshContext, { draft, recipientId }: OutboundMessage): RowWrite[] {
  const swarm = context.view.swarms.get(draft.swarm_id);
  const member = swarm?.members.get(recipientId);
  if (swarm?.master !== context.id || member === undefined || isAnnouncementOfMaster(draft)) return [];
  if (proofsOf(swarm).length === 0) return [];
  return context.outgoingRows(swarm.id, announceMaster(swarm, [member])).rows;
}

/** Tried until its deadline: a member that cannot check the proofs yet may learn a missing key days later. */
function isAnnouncementOfMaster({ content }: UnsignedMessage): boolean {
  const reading = readSystemContent(content);
  return "content" in reading && reading.content.action === "master_changed";
}

/** Signs a content as a message to all members. */
export function prove(context: MeshContext, swarmId: string, content: string): HandoverProof {
  const message_id = context.parts.ids.uuid();
  const draft: UnsignedMessage = {
    message_id,
    swarm_id: swarmId,
    recipient: BROADCAST,
    type: "system",
    content,
  };
  const { timestamp, recipient, signature } = signMessage(
    draft,
    { ...context.signer, seals: false },
    context.now,
  );
  return { sender: context.id, message_id, timestamp, recipient, content, signature };
}

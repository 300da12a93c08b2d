/** All checks of an incoming message, in the order that discloses the least to unauthenticated peers. */
import { retryAfterSeconds } from "../../base/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { MeshContext } from "../context.js";
import { refuse, type WireRefusal } from "../errors.js";
import type { PublicKey } from "../identity/keys.js";
import type { SyncResult } from "../join/membership-sync.js";
import type { KeyRefresh } from "../keys/refresh.js";
import type { LimitStatus, RateLimiter } from "../limits.js";
import { type Admission, admitMessage, checkFreshness, isMuted } from "../membership/admit.js";
import {
  decideLifecycle,
  introducedMaster,
  joinEvent,
  type LifecycleDecision,
} from "../membership/lifecycle.js";
import { memberWrites } from "../membership/sync.js";
import type { Member, Swarm } from "../membership/types.js";
import { checkMessage, checkVersion } from "../message/check.js";
import { checkSeal, type SealVerdict } from "../message/seal.js";
import type { MeshMessage } from "../message/types.js";
import { type QueuedMessage, queueKey } from "../messages.js";
import { createPeers } from "../send/peers.js";
import { isSignedBy } from "../signature.js";
import type { MeshRowWrite, ViewWrite } from "../writes.js";

export interface IncomingHeaders {
  /** Length of the body. */
  readonly bytes?: number;
  readonly agentId?: string | undefined;
  readonly protocol?: string | undefined;
}

export type ReceiveResult =
  | { readonly refusal: WireRefusal; readonly limit?: LimitStatus }
  | {
      readonly message: MeshMessage;
      /** What happened to the message. The sender receives `queued` in every case. */
      readonly fate: "queued" | "duplicate" | "muted";
      readonly limit: LimitStatus;
    };

export interface ReceiverParts {
  readonly context: MeshContext;
  readonly keys: KeyRefresh;
  readonly senders: RateLimiter;
  readonly senderBytes: RateLimiter;
  readonly swarms: RateLimiter;
  /** Limits replayed messages separately from the sender's own. */
  readonly replays: RateLimiter;
  /** Asks the master about an unknown sender. */
  readonly askForMessage: (swarmId: string) => Promise<SyncResult>;
  /** Whether this agent waits to be admitted to a swarm. Asks the master again. */
  readonly askToJoin: (swarmId: string) => boolean;
}

export async function receiveMessage(
  parts: ReceiverParts,
  value: unknown,
  headers: IncomingHeaders = {},
): Promise<ReceiveResult> {
  const { context } = parts;
  const checked = checkMessage(value);
  if ("problems" in checked) {
    const [first] = checked.problems;
    return refuse("INVALID_FORMAT", "invalid_format", `${first?.path} ${first?.message}`.trim(), {
      details: { problems: checked.problems },
    });
  }
  const { message } = checked;
  const contradiction = checkHeaders(message, headers);
  if (contradiction !== undefined) return { refusal: contradiction };

  let admission = admitMessage(message, context.id, context.view, context.joining);
  if (
    "refusal" in admission &&
    admission.refusal.reason === "unknown_swarm" &&
    parts.askToJoin(message.swarm_id)
  ) {
    return refuse("UNAVAILABLE", "joining", "this agent is joining the swarm: try again", { retryAfter: 2 });
  }
  const introduced = introducedSender(context, message, admission);
  if (introduced !== undefined) admission = introduced;
  if ("refusal" in admission && admission.refusal.reason === "not_a_member") {
    // The sender may have joined without this agent having received the announcement.
    const asked = await parts.askForMessage(message.swarm_id);
    if (asked !== "nobody") admission = admitMessage(message, context.id, context.view, context.joining);
    if ("refusal" in admission && asked === "later") {
      return refuse(
        "UNAVAILABLE",
        "sender_unknown",
        "the sender is unknown, and the master cannot be asked at the moment",
        { retryAfter: ASK_AGAIN },
      );
    }
  }
  if ("refusal" in admission) return admission;
  const { swarm, member } = admission;

  const verified = await verify(parts, message, member, swarm);
  if ("refusal" in verified) return verified;

  const { store, options } = context.parts;
  const stale = checkFreshness(message, context.now, options.freshness);
  if (stale !== undefined) return { refusal: stale };
  const isReplay = await store.mesh.seen(message.swarm_id, message.sender.agent_id, message.message_id);
  const limit = isReplay ? consumeReplay(parts, message) : consumeRate(parts, message, headers.bytes ?? 0);
  if (!limit.allowed) {
    const retryAfter = Math.min(60, retryAfterSeconds(limit.resetAt - context.now));
    return { ...refuse("RATE_LIMITED", "rate_limited", "too many messages", { retryAfter }), limit };
  }
  if (isReplay) return { message, fate: "duplicate", limit };
  // Fetched outside the exclusive section, which other messages wait for.
  const newcomer = message.type === "system" ? await findNewcomer(context, message, swarm) : undefined;
  const proven = { member, keyWrites: verified.writes, newcomer };
  const take = (): Promise<ReceiveResult> => accept(context, message, proven, limit);
  const reception = await (message.type === "system" || verified.writes.length > 0
    ? context.exclusive(take)
    : take());
  if (!("refusal" in reception)) parts.keys.refreshIfStale(member);
  return reception;
}

/** A new master that this agent does not know is admitted if it can prove the transfer. */
function introducedSender(
  context: MeshContext,
  message: MeshMessage,
  admission: Admission,
): Admission | undefined {
  const isUnknown = "refusal" in admission && admission.refusal.reason === "not_a_member";
  const swarm = isUnknown ? context.view.swarms.get(message.swarm_id) : undefined;
  const member = swarm && introducedMaster(message, swarm, context.now);
  return swarm && member && { swarm, member };
}

/** Seconds. */
const ASK_AGAIN = 60;

function checkHeaders(message: MeshMessage, { agentId, protocol }: IncomingHeaders): WireRefusal | undefined {
  if (agentId !== undefined && agentId !== message.sender.agent_id) {
    return refuse("INVALID_FORMAT", "header_mismatch", "X-Agent-ID differs from the sender").refusal;
  }
  const wrong = protocol === undefined ? undefined : checkVersion(protocol);
  return wrong === undefined
    ? undefined
    : refuse("INVALID_FORMAT", "header_mismatch", `X-Swarm-Protocol ${wrong}`).refusal;
}

type Verified = { readonly writes: readonly ViewWrite[] } | { readonly refusal: WireRefusal };

/** Verifies with the pinned key and, if that fails, with the key that the member's endpoint serves now. */
async function verify(
  { context, keys }: ReceiverParts,
  message: MeshMessage,
  member: Member,
  swarm: Swarm,
): Promise<Verified> {
  // Verified concurrently; the seal counts only if the signature is valid.
  const examine = async (text: string) => {
    const key = context.keyOf(text);
    if (key === undefined) return undefined;
    const [holds, seal] = await Promise.all([isSignedBy(message, key), checkSeal(message, key)]);
    return holds ? judgeSeal(context, seal, member, key) : undefined;
  };
  const pinned = await examine(member.publicKey);
  if (pinned !== undefined) return pinned;
  const changed = await keys.changedKey(member);
  const judged = changed === undefined ? undefined : await examine(changed);
  if (changed === undefined || judged === undefined) {
    return refuse("INVALID_SIGNATURE", "invalid_signature", "the signature does not match the sender's key");
  }
  if ("refusal" in judged) return judged;
  context.parts.report({
    code: "mesh_key_changed",
    message: `${member.agentId} signs with a new key, which its endpoint ${member.endpoint} confirms`,
  });
  const renewed: Member = { ...member, publicKey: changed };
  const { agentId, endpoint } = member;
  return {
    writes: [
      { kind: "mesh.member.put", swarmId: swarm.id, member: renewed },
      { kind: "mesh.key.put", key: { agentId, publicKey: changed, fetchedAt: context.now, endpoint } },
      ...judged.writes,
    ],
  };
}

/**
 * ASP leaves most fields unsigned. A recipient of a broadcast could forward it with other fields before the original
 * arrives, and the original would count as a duplicate. So a message with a broken or removed seal is refused.
 */
function judgeSeal(
  { view, parts, now }: MeshContext,
  seal: SealVerdict,
  member: Member,
  key: PublicKey,
): Verified {
  const { sealPolicy } = parts.options;
  switch (seal) {
    case "sealed":
      return view.sealingKeys.has(key.text)
        ? NO_WRITES
        : { writes: [{ kind: "mesh.seal.put", publicKey: key.text, since: now }] };
    case "unsealed":
      if (sealPolicy === "optional") return NO_WRITES;
      if (sealPolicy === "remember" && ![key.text, member.publicKey].some((one) => view.sealingKeys.has(one)))
        return NO_WRITES;
      return refuse("INVALID_SIGNATURE", "unsealed", "the message must be sealed");
    case "broken":
      return refuse("INVALID_SIGNATURE", "broken_seal", "the message was changed after it was sealed");
  }
}

const NO_WRITES: { readonly writes: readonly ViewWrite[] } = { writes: [] };

/** A message beyond the swarm's limit does not count against its sender. */
function consumeRate(parts: ReceiverParts, message: MeshMessage, bytes: number): LimitStatus {
  const { senders, senderBytes, swarms } = parts;
  const { now } = parts.context;
  const sender = senderOf(message);
  const bySwarm = swarms.check(message.swarm_id, now);
  if (!bySwarm.allowed) return bySwarm;
  const byBytes = senderBytes.check(sender, now, bytes);
  // Reported in messages, because the headers count messages.
  if (!byBytes.allowed) return { ...senders.check(sender, now), allowed: false, resetAt: byBytes.resetAt };
  const bySender = senders.consume(sender, now);
  if (!bySender.allowed) return bySender;
  senderBytes.consume(sender, now, bytes);
  swarms.consume(message.swarm_id, now);
  return bySender;
}

/** Anyone that has a message can replay it, so replays must not consume the sender's limit. */
function consumeReplay({ context, replays }: ReceiverParts, message: MeshMessage): LimitStatus {
  return replays.consume(senderOf(message), context.now);
}

function senderOf({ swarm_id, sender }: MeshMessage): string {
  return `${swarm_id}/${sender.agent_id}`;
}

/** What was verified outside the exclusive section. */
interface Proven {
  readonly member: Member;
  readonly keyWrites: readonly ViewWrite[];
  /** The member that the message announces, with the key that the message omits. */
  readonly newcomer: Member | undefined;
}

/** Decides on the current state, and commits everything that follows in one batch. */
async function accept(
  context: MeshContext,
  message: MeshMessage,
  { member: verified, keyWrites, newcomer }: Proven,
  limit: LimitStatus,
): Promise<ReceiveResult> {
  const swarm = context.view.swarms.get(message.swarm_id);
  const senderId = message.sender.agent_id;
  const sender = swarm?.members.get(senderId) ?? (swarm && introducedMaster(message, swarm, context.now));
  if (swarm === undefined || sender === undefined) {
    return refuse("NOT_AUTHORIZED", "not_a_member", "the sender is not a member of the swarm");
  }
  // The sender's key or endpoint may have changed during verification.
  if (sender.publicKey !== verified.publicKey || sender.endpoint !== verified.endpoint) {
    return refuse("UNAVAILABLE", "key_changed", "the sender's key changed during verification: try again", {
      retryAfter: 1,
    });
  }
  const decision: LifecycleDecision =
    message.type === "system" ? decideLifecycle(message, swarm, context.id, context.now) : { writes: [] };
  if ("refusal" in decision) {
    // The sender's endpoint confirmed its new key: proofs that it signed can be checked from now on.
    if (keyWrites.length > 0 && swarm.members.has(senderId)) {
      await context.commit([...keyWrites, ...stillSealing(context, swarm, keyWrites)], swarm.id);
    }
    // The master that this agent knows can prove who followed it, with its current key.
    if (decision.refusal.reason === "unproven_master") context.onMasterUnheard(swarm.id);
    return { refusal: decision.refusal, limit };
  }

  const joined = decision.introduce === undefined ? undefined : newcomer;
  const event = joined === undefined ? decision.event : joinEvent(joined.agentId, swarm.master);
  const at = context.now;
  const muted = isMuted(context.view, swarm.id, senderId);
  const seen: MeshRowWrite = {
    kind: "mesh.seen.put",
    swarmId: swarm.id,
    senderId,
    messageId: message.message_id,
    at,
  };
  const waits = message.type !== "system" && context.parts.options.awaitsTasks;
  const queued = toQueued(message, waits ? "pending" : "completed", at);
  const writes: MeshRowWrite[] = [seen, ...keyWrites, ...decision.writes, ...introduce(joined, swarm, at)];
  writes.push(...stillSealing(context, swarm, [...keyWrites, ...decision.writes]));
  if (!muted) writes.push({ kind: "mesh.queue.put", message: queued });
  try {
    await context.commit(writes, swarm.id, decision.announcements);
  } catch (error) {
    // Another request with the same message was committed first.
    if (error instanceof RowConflictError && error.kind === seen.kind) {
      return { message, fate: "duplicate", limit };
    }
    throw error;
  }
  if (event !== undefined) await context.recordEvent(swarm.id, event);
  if (decision.asksMaster === true) context.onMasterUnheard(swarm.id);
  if (muted) return { message, fate: "muted", limit };
  context.onQueued(queued);
  return { message, fate: "queued", limit };
}

/**
 * A sender that sealed with its old key must also seal with its new one, even if this message is its first sealed
 * one.
 */
function stillSealing({ view, now }: MeshContext, swarm: Swarm, writes: readonly ViewWrite[]): ViewWrite[] {
  // A key that no swarm uses is removed, so that frequent rotations do not fill the memory.
  const isUsedElsewhere = (key: string): boolean =>
    [...view.swarms.values()].some(
      ({ id, members }) =>
        id !== swarm.id && [...members.values()].some(({ publicKey }) => publicKey === key),
    );
  const seals = (key: string): boolean =>
    view.sealingKeys.has(key) ||
    writes.some((write) => write.kind === "mesh.seal.put" && write.publicKey === key);
  return writes.flatMap((write): ViewWrite[] => {
    if (write.kind !== "mesh.member.put") return [];
    const { agentId, publicKey } = write.member;
    const before = swarm.members.get(agentId)?.publicKey;
    if (before === undefined || before === publicKey || !seals(before)) return [];
    const next: ViewWrite[] = seals(publicKey) ? [] : [{ kind: "mesh.seal.put", publicKey, since: now }];
    return isUsedElsewhere(before) ? next : [...next, { kind: "mesh.seal.remove", publicKey: before }];
  });
}

/** For a master that announces no key: fetches it from the new member's endpoint. On failure no member is added. */
async function findNewcomer(
  context: MeshContext,
  message: MeshMessage,
  swarm: Swarm,
): Promise<Member | undefined> {
  const decision = decideLifecycle(message, swarm, context.id, context.now);
  if ("refusal" in decision || decision.introduce === undefined) return undefined;
  const { agentId, endpoint, joinedAt } = decision.introduce;
  const info = await createPeers(context.parts.http, context.id, () => context.now).info(endpoint, agentId);
  if ("publicKey" in info) return { agentId, endpoint, publicKey: info.publicKey, joinedAt };
  context.parts.report({
    code: "mesh_member_unknown",
    message: `${agentId} joined ${swarm.name}, but its key could not be fetched: ${info.reason}`,
  });
  return undefined;
}

function introduce(member: Member | undefined, swarm: Swarm, at: number): ViewWrite[] {
  if (member === undefined) return [];
  const { agentId, publicKey, endpoint } = member;
  return [
    ...memberWrites(swarm, member),
    { kind: "mesh.key.put", key: { agentId, publicKey, fetchedAt: at, endpoint } },
  ];
}

/** Assigns field by field: this runs for every message, and spreading objects is slower. */
function toQueued(message: MeshMessage, status: "pending" | "completed", receivedAt: number): QueuedMessage {
  const senderId = message.sender.agent_id;
  const queued: Mutable<QueuedMessage> = {
    id: queueKey(message.swarm_id, senderId, message.message_id),
    messageId: message.message_id,
    swarmId: message.swarm_id,
    senderId,
    recipientId: message.recipient,
    type: message.type,
    content: message.content,
    envelope: JSON.stringify(message),
    receivedAt,
    // System messages have taken effect; other messages wait for local agents, if there are any.
    status,
    box: "unread",
  };
  if (message.in_reply_to !== undefined) queued.inReplyTo = message.in_reply_to;
  if (message.thread_id !== undefined) queued.threadId = message.thread_id;
  if (status === "completed") queued.processedAt = receivedAt;
  return queued;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

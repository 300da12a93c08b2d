/** The way in: everything that is asked of a message before it counts, in the order that gives least away. */
import { RowConflictError } from "../engine/ports.js";
import type { MeshCore } from "./core.js";
import { type Refusal, refuse } from "./errors.js";
import type { PublicKey } from "./identity/keys.js";
import type { KeyRefresh } from "./key-refresh.js";
import type { RateLimiter, Standing } from "./limits.js";
import { admitMessage, checkFreshness, isMuted } from "./membership/admit.js";
import { decideLifecycle, joinEvent, type LifecycleDecision } from "./membership/lifecycle.js";
import { memberWrites } from "./membership/sync.js";
import type { Member, Swarm } from "./membership/types.js";
import { checkMessage, checkVersion } from "./message/check.js";
import { checkSeal, type SealVerdict } from "./message/seal.js";
import type { MeshMessage } from "./message/types.js";
import { createPeers } from "./peers.js";
import { type QueuedMessage, queueKey } from "./queue.js";
import { isSignedBy } from "./signature.js";
import type { Asked } from "./synchroniser.js";
import type { MeshRowWrite, ViewWrite } from "./writes.js";

export interface IncomingHeaders {
  /** How long the body was. */
  readonly bytes?: number;
  readonly agentId?: string | undefined;
  readonly protocol?: string | undefined;
}

export type Reception =
  | { readonly refusal: Refusal; readonly standing?: Standing }
  | {
      readonly message: MeshMessage;
      /** What became of it. The sender is told `queued` in every case. */
      readonly fate: "queued" | "duplicate" | "muted";
      readonly standing: Standing;
    };

export interface ReceiverParts {
  readonly core: MeshCore;
  readonly keys: KeyRefresh;
  readonly senders: RateLimiter;
  readonly senderBytes: RateLimiter;
  readonly swarms: RateLimiter;
  /** Messages that were taken before; by what the sender may say, too. */
  readonly replays: RateLimiter;
  /** Asks the master who is in, because of somebody who is not known here. */
  readonly askForMessage: (swarmId: string) => Promise<Asked>;
}

export async function receiveMessage(
  parts: ReceiverParts,
  value: unknown,
  headers: IncomingHeaders = {},
): Promise<Reception> {
  const { core } = parts;
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

  let admission = admitMessage(message, core.id, core.view, core.joining);
  if ("refusal" in admission && admission.refusal.reason === "not_a_member") {
    // Somebody may have joined without our having heard of it.
    const asked = await parts.askForMessage(message.swarm_id);
    if (asked !== "nobody") admission = admitMessage(message, core.id, core.view, core.joining);
    if ("refusal" in admission && asked === "later") {
      return refuse(
        "UNAVAILABLE",
        "sender_unknown",
        "the sender is not known here, and the master cannot be asked now",
        { retryAfter: ASK_AGAIN },
      );
    }
  }
  if ("refusal" in admission) return admission;
  const { swarm, member } = admission;

  const verified = await verify(parts, message, member, swarm);
  if ("refusal" in verified) return verified;

  const { store, options } = core.parts;
  const stale = checkFreshness(message, core.now, options.freshness);
  if (stale !== undefined) return { refusal: stale };
  const isReplay = await store.mesh.seen(message.swarm_id, message.sender.agent_id, message.message_id);
  const standing = isReplay ? takeReplay(parts, message) : takeRate(parts, message, headers.bytes ?? 0);
  if (!standing.allowed) {
    const retryAfter = Math.min(60, Math.max(1, Math.ceil((standing.resetAt - core.now) / 1_000)));
    return { ...refuse("RATE_LIMITED", "rate_limited", "too many messages", { retryAfter }), standing };
  }
  if (isReplay) return { message, fate: "duplicate", standing };
  // Asked before anything is held up by it.
  const newcomer = message.type === "system" ? await findNewcomer(core, message, swarm) : undefined;
  const proven = { member, keyWrites: verified.writes, newcomer };
  const take = (): Promise<Reception> => takeIn(core, message, proven, standing);
  const reception = await (message.type === "system" || verified.writes.length > 0
    ? core.exclusive(take)
    : take());
  if (!("refusal" in reception)) parts.keys.refreshIfStale(member);
  return reception;
}

/** Seconds. */
const ASK_AGAIN = 60;

function checkHeaders(message: MeshMessage, { agentId, protocol }: IncomingHeaders): Refusal | undefined {
  if (agentId !== undefined && agentId !== message.sender.agent_id) {
    return refuse("INVALID_FORMAT", "header_mismatch", "X-Agent-ID names another agent than the sender")
      .refusal;
  }
  const wrong = protocol === undefined ? undefined : checkVersion(protocol);
  return wrong === undefined
    ? undefined
    : refuse("INVALID_FORMAT", "header_mismatch", `X-Swarm-Protocol ${wrong}`).refusal;
}

type Verified = { readonly writes: readonly ViewWrite[] } | { readonly refusal: Refusal };

/** With the pinned key; failing that, once in a while, with the one that the member's endpoint shows now. */
async function verify(
  { core, keys }: ReceiverParts,
  message: MeshMessage,
  member: Member,
  swarm: Swarm,
): Promise<Verified> {
  // Both at once; the answer about the seal counts only if the signature holds.
  const examine = async (text: string) => {
    const key = core.keyOf(text);
    if (key === undefined) return undefined;
    const [holds, seal] = await Promise.all([isSignedBy(message, key), checkSeal(message, key)]);
    return holds ? judgeSeal(core, seal, member, key) : undefined;
  };
  const pinned = await examine(member.publicKey);
  if (pinned !== undefined) return pinned;
  const changed = await keys.changedKey(member);
  const judged = changed === undefined ? undefined : await examine(changed);
  if (changed === undefined || judged === undefined) {
    return refuse("INVALID_SIGNATURE", "invalid_signature", "the signature does not fit the sender's key");
  }
  if ("refusal" in judged) return judged;
  core.parts.report({
    code: "mesh_key_changed",
    message: `${member.agentId} signs with a new key, which its endpoint ${member.endpoint} confirms`,
  });
  const renewed: Member = { ...member, publicKey: changed };
  const { agentId, endpoint } = member;
  return {
    writes: [
      { kind: "mesh.member.put", swarmId: swarm.id, member: renewed },
      { kind: "mesh.key.put", key: { agentId, publicKey: changed, fetchedAt: core.now, endpoint } },
      ...judged.writes,
    ],
  };
}

/**
 * ASP leaves most fields unsigned: whoever gets a broadcast could hand it on with others before the original comes, and
 * the original would count as a duplicate. A message whose seal does not hold, or was taken away, is no message.
 */
function judgeSeal(
  { view, parts, now }: MeshCore,
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
      return refuse("INVALID_SIGNATURE", "unsealed", "the message is not sealed, as those of its sender are");
    case "broken":
      return refuse(
        "INVALID_SIGNATURE",
        "broken_seal",
        "fields of the message were changed after it was sealed",
      );
  }
}

const NO_WRITES: { readonly writes: readonly ViewWrite[] } = { writes: [] };

/** What the swarm has no room for is not counted against its sender. */
function takeRate(parts: ReceiverParts, message: MeshMessage, bytes: number): Standing {
  const { senders, senderBytes, swarms } = parts;
  const { now } = parts.core;
  const sender = senderOf(message);
  const bySwarm = swarms.look(message.swarm_id, now);
  if (!bySwarm.allowed) return bySwarm;
  const byBytes = senderBytes.look(sender, now, bytes);
  // Told in messages, as the headers are.
  if (!byBytes.allowed) return { ...senders.look(sender, now), allowed: false, resetAt: byBytes.resetAt };
  const bySender = senders.take(sender, now);
  if (!bySender.allowed) return bySender;
  senderBytes.take(sender, now, bytes);
  swarms.take(message.swarm_id, now);
  return bySender;
}

/** Anybody who has a message can send it again: that must not use up what its sender may say. */
function takeReplay({ core, replays }: ReceiverParts, message: MeshMessage): Standing {
  return replays.take(senderOf(message), core.now);
}

function senderOf({ swarm_id, sender }: MeshMessage): string {
  return `${swarm_id}/${sender.agent_id}`;
}

/** What was found out about a message while others were not held up. */
interface Proven {
  readonly member: Member;
  readonly keyWrites: readonly ViewWrite[];
  /** Whom it announces, with the key that it does not tell. */
  readonly newcomer: Member | undefined;
}

/** Decides on what is known now, and makes everything that follows durable in one commit. */
async function takeIn(
  core: MeshCore,
  message: MeshMessage,
  { member: verified, keyWrites, newcomer }: Proven,
  standing: Standing,
): Promise<Reception> {
  const swarm = core.view.swarms.get(message.swarm_id);
  const senderId = message.sender.agent_id;
  const sender = swarm?.members.get(senderId);
  if (swarm === undefined || sender === undefined) {
    return refuse("NOT_AUTHORIZED", "not_a_member", "the sender is not a member of the swarm");
  }
  // While its signature was verified or its endpoint asked, the sender may have got another key, or another place.
  if (sender.publicKey !== verified.publicKey || sender.endpoint !== verified.endpoint) {
    return refuse("UNAVAILABLE", "key_changed", "the sender's key has changed meanwhile: try again", {
      retryAfter: 1,
    });
  }
  const decision: LifecycleDecision =
    message.type === "system" ? decideLifecycle(message, swarm, core.id) : { writes: [] };
  if ("refusal" in decision) return { refusal: decision.refusal, standing };

  const joined = decision.introduce === undefined ? undefined : newcomer;
  const event = joined === undefined ? decision.event : joinEvent(joined.agentId, swarm.master);
  const at = core.now;
  const muted = isMuted(core.view, swarm.id, senderId);
  const seen: MeshRowWrite = {
    kind: "mesh.seen.put",
    swarmId: swarm.id,
    senderId,
    messageId: message.message_id,
    at,
  };
  const waits = message.type !== "system" && core.parts.options.awaitsTasks;
  const queued = toQueued(message, waits ? "pending" : "completed", at);
  const writes: MeshRowWrite[] = [seen, ...keyWrites, ...decision.writes, ...introduce(joined, swarm, at)];
  writes.push(...stillSealing(core, swarm, [...keyWrites, ...decision.writes]));
  if (!muted) writes.push({ kind: "mesh.queue.put", message: queued });
  try {
    await core.commit(writes, swarm.id);
  } catch (error) {
    // The same message came in twice at once; the other one was first.
    if (error instanceof RowConflictError && error.kind === seen.kind) {
      return { message, fate: "duplicate", standing };
    }
    throw error;
  }
  if (event !== undefined) await core.note(swarm.id, event);
  if (muted) return { message, fate: "muted", standing };
  core.onQueued(queued);
  return { message, fate: "queued", standing };
}

/** Whoever sealed with its old key is held to it with its new one, also if this very message is the first sealed one. */
function stillSealing({ view, now }: MeshCore, swarm: Swarm, writes: readonly ViewWrite[]): ViewWrite[] {
  // A key that no swarm knows any more is forgotten, or whoever changes it often would fill the memory.
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

/** A master that announces no key: the new member's endpoint is asked, and without an answer nobody is added. */
async function findNewcomer(core: MeshCore, message: MeshMessage, swarm: Swarm): Promise<Member | undefined> {
  const decision = decideLifecycle(message, swarm, core.id);
  if ("refusal" in decision || decision.introduce === undefined) return undefined;
  const { agentId, endpoint, joinedAt } = decision.introduce;
  const info = await createPeers(core.parts.http, core.id, () => core.now).info(endpoint, agentId);
  if ("publicKey" in info) return { agentId, endpoint, publicKey: info.publicKey, joinedAt };
  core.parts.report({
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

/** Written out field by field: it is made for every message, and spreading objects together takes longer. */
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
    // A system message has had its effect; what is for agents waits for them, if there are any.
    status,
    box: "unread",
  };
  if (message.in_reply_to !== undefined) queued.inReplyTo = message.in_reply_to;
  if (message.thread_id !== undefined) queued.threadId = message.thread_id;
  if (status === "completed") queued.processedAt = receivedAt;
  return queued;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * Decides what a verified system message changes. Authority comes from the sender's role in the stored membership,
 * never from the message itself.
 */
import { refuse, type WireRefusal } from "../errors.js";
import { checkAgentId } from "../identity/agent-id.js";
import { decodeBase64 } from "../identity/base64.js";
import { parsePublicKey, verifyWith } from "../identity/keys.js";
import { checkEndpoint } from "../message/endpoint.js";
import type { MeshMessage } from "../message/types.js";
import { parseCanonicalTime, parseTime } from "../time.js";
import type { ViewWrite } from "../writes.js";
import { followHandovers, handoverTime, hasNewer, lastOf, listedHandovers } from "./handover.js";
import {
  type Announcement,
  announceJoin,
  announceKick,
  announceMaster,
  kickWrites,
  otherMembers,
  toSwarmRecord,
} from "./operations.js";
import { memberWrites } from "./sync.js";
import { readSystemContent, rotationText, type SystemContent } from "./system-content.js";
import type { Handover, HandoverProof, LifecycleEvent, Member, Swarm } from "./types.js";

export type LifecycleDecision =
  | { readonly refusal: WireRefusal }
  | {
      readonly writes: readonly ViewWrite[];
      readonly event?: LifecycleEvent;
      readonly announcements?: readonly Announcement[];
      /** Announcements of the old master may be missing: the new one should be asked for its member list. */
      readonly asksMaster?: true;
      /** A member whose key was not announced and must be fetched before the member is added. */
      readonly introduce?: { readonly agentId: string; readonly endpoint: string; readonly joinedAt: number };
    };

const NOTHING: LifecycleDecision = { writes: [] };

/** A leave message that is much older than the current join belongs to an earlier membership. */
const TOLERANCE = 300_000;

export function decideLifecycle(
  message: MeshMessage,
  swarm: Swarm,
  selfId: string,
  now: number,
): LifecycleDecision {
  const reading = readSystemContent(message.content);
  if ("plain" in reading) return NOTHING;
  if ("problem" in reading) return refuse("INVALID_FORMAT", "ambiguous_content", reading.problem);
  const { content } = reading;
  const facts: Facts = { message, content, swarm, selfId, now, sender: message.sender.agent_id };
  switch (content.action) {
    case "member_joined":
      return asMaster(facts, memberJoined);
    case "member_kicked":
      return asMaster(facts, memberKicked);
    case "kicked":
      return asMaster(facts, kicked);
    case "swarm_dissolved":
      return isMaster(facts) ? dissolved(facts) : notMaster(content.action);
    case "master_transfer":
      return masterTransfer(facts);
    case "master_changed":
      return masterChanged(facts);
    case "member_left":
      return memberLeft(facts);
    case "key_rotated":
      return keyRotated(facts);
    case "endpoint_changed":
      return endpointChanged(facts);
    default:
      // An action of a newer protocol version: stored as a message, without effect.
      return NOTHING;
  }
}

interface Facts {
  readonly message: MeshMessage;
  readonly content: SystemContent;
  readonly swarm: Swarm;
  readonly selfId: string;
  readonly now: number;
  readonly sender: string;
}

function isMaster({ sender, swarm }: Facts): boolean {
  return sender === swarm.master;
}

/** What a former master announced before it handed over still counts: its messages may arrive late. */
function wasMaster({ message, sender, swarm }: Facts): boolean {
  const at = parseCanonicalTime(message.timestamp) ?? Number.POSITIVE_INFINITY;
  return swarm.handovers?.some((handover) => handover.from === sender && at <= handover.at) === true;
}

/** The current master knows what a former one announced, and what changed since: it is asked afterwards. */
function asMaster(facts: Facts, decide: (facts: Facts) => LifecycleDecision): LifecycleDecision {
  if (isMaster(facts)) return decide(facts);
  if (!wasMaster(facts)) return notMaster(facts.content.action);
  const decision = decide(facts);
  if ("refusal" in decision) return decision;
  const { swarm, selfId } = facts;
  return swarm.master === selfId
    ? { ...decision, announcements: announceAgain(swarm, decision.writes) }
    : { ...decision, asksMaster: true };
}

/**
 * The master learns late what its predecessor announced. Members that asked for its list before, the predecessor among
 * them, have dropped the change: the master announces it as its own.
 */
function announceAgain(swarm: Swarm, writes: readonly ViewWrite[]): readonly Announcement[] {
  return writes.flatMap((write) => {
    if (write.kind === "mesh.member.put") return [announceJoin(swarm, write.member)];
    if (write.kind === "mesh.ban.put") return [announceKick(swarm, write.ban, write.ban.at)];
    return [];
  });
}

function notMaster(action: string): { readonly refusal: WireRefusal } {
  return refuse("NOT_AUTHORIZED", "not_master", `only the master of the swarm can send ${action}`);
}

function memberJoined({ message, content, swarm, selfId }: Facts): LifecycleDecision {
  const { agentId, endpoint } = content;
  if (agentId === undefined || checkAgentId(agentId) !== undefined) {
    return refuse("INVALID_FORMAT", "bad_member", "the new member's agent_id is missing or invalid");
  }
  if (agentId === selfId) return NOTHING;
  if (endpoint === undefined || checkEndpoint(endpoint) !== undefined) {
    return refuse("INVALID_FORMAT", "bad_member", "the new member's endpoint is missing or invalid");
  }
  const joinedAt = parseTime(content.joinedAt ?? message.timestamp) ?? 0;
  // The announcement arrives after that of a later kick.
  const ban = swarm.bans.get(agentId);
  if (ban !== undefined && ban.at > joinedAt) return NOTHING;
  const known = swarm.members.get(agentId);
  if (content.publicKey === undefined) {
    return known === undefined ? { writes: [], introduce: { agentId, endpoint, joinedAt } } : NOTHING;
  }
  const parsed = parsePublicKey(content.publicKey);
  if ("reason" in parsed)
    return refuse("INVALID_FORMAT", "bad_member", `the new member's key ${parsed.reason}`);
  const member: Member = { agentId, endpoint, publicKey: parsed.key.text, joinedAt };
  if (known !== undefined) return rejoined(swarm, known, member);
  return { writes: memberWrites(swarm, member), event: joinEvent(agentId, swarm.master) };
}

/** A later membership, or another endpoint, of the same agent. A known key is replaced only by a rotation. */
function rejoined({ id: swarmId }: Swarm, known: Member, member: Member): LifecycleDecision {
  if (known.publicKey !== member.publicKey || known.joinedAt > member.joinedAt) return NOTHING;
  if (known.joinedAt === member.joinedAt && known.endpoint === member.endpoint) return NOTHING;
  return { writes: [{ kind: "mesh.member.put", swarmId, member: { ...known, ...member } }] };
}

export function joinEvent(agentId: string, master: string): LifecycleEvent {
  return { action: "member_joined", agentId, initiatedBy: master };
}

/** Members also store bans, because each of them may become the master. */
function memberKicked(facts: Facts): LifecycleDecision {
  const { message, content, swarm, selfId, sender } = facts;
  if (content.agentId === undefined) return NOTHING;
  if (content.agentId === selfId) return kicked(facts);
  if (content.agentId === swarm.master) {
    return refuse("NOT_AUTHORIZED", "master_stays", "the master cannot be kicked");
  }
  const sentAt = parseCanonicalTime(message.timestamp) ?? 0;
  // Announced again by a later master: the kick is older than the message, and a join between them counts.
  const at = Math.min(parseTime(content.kickedAt ?? "") ?? sentAt, sentAt);
  const member = swarm.members.get(content.agentId);
  if (member === undefined) return unknownKicked(swarm, content.agentId, at);
  // Two masters have announced: the kick belongs to an earlier membership.
  if (swarm.handovers !== undefined && at < member.joinedAt) return NOTHING;
  return {
    writes: kickWrites(swarm.id, member, at, content.reason),
    event: event("member_kicked", content.agentId, sender, content.reason),
  };
}

/** The announcement of the join may arrive after that of the kick: the ban outlasts it. */
function unknownKicked({ id: swarmId, bans }: Swarm, agentId: string, at: number): LifecycleDecision {
  const known = bans.get(agentId);
  if (checkAgentId(agentId) !== undefined || (known?.at ?? 0) >= at) return NOTHING;
  const ban = { publicKey: "", ...known, swarmId, agentId, at };
  return { writes: [{ kind: "mesh.ban.put", ban }] };
}

function kicked({ content, swarm, selfId, sender }: Facts): LifecycleDecision {
  if (content.agentId !== undefined && content.agentId !== selfId) {
    return refuse("INVALID_FORMAT", "bad_member", "the message kicks another agent");
  }
  return {
    writes: [{ kind: "mesh.swarm.remove", swarmId: swarm.id }],
    event: event("member_kicked", selfId, sender, content.reason),
  };
}

function dissolved({ content, swarm, sender }: Facts): LifecycleDecision {
  return {
    writes: [{ kind: "mesh.swarm.remove", swarmId: swarm.id }],
    event: event("swarm_dissolved", sender, sender, content.reason),
  };
}

function masterTransfer({ message, content, swarm, selfId, sender }: Facts): LifecycleDecision {
  const newMaster = content.newMaster ?? content.agentId;
  if (newMaster !== selfId)
    return refuse("INVALID_FORMAT", "bad_member", "the message names another agent as the new master");
  if (sender !== swarm.master) {
    // A repeated offer: the old master has not received the response.
    return tookOverFrom(swarm, sender, selfId) ? NOTHING : notMaster(content.action);
  }
  const at = handoverTime(swarm, parseCanonicalTime(message.timestamp) ?? 0);
  return changeMaster(swarm, { from: sender, to: selfId, at });
}

function tookOverFrom({ handovers = [] }: Swarm, sender: string, selfId: string): boolean {
  return handovers.some(({ from, to }) => from === sender && to === selfId);
}

/**
 * Whether a message, now or earlier, made this agent the master in place of its sender. The sender requires this
 * confirmation, because software without transfers also accepts the message.
 */
export function acceptedMastership(
  { type, content, sender }: MeshMessage,
  swarm: Swarm | undefined,
  selfId: string,
): boolean {
  if (type !== "system" || swarm === undefined || swarm.master === sender.agent_id) return false;
  const reading = readSystemContent(content);
  const isOffer = "content" in reading && reading.content.action === "master_transfer";
  return isOffer && tookOverFrom(swarm, sender.agent_id, selfId);
}

function masterChanged(facts: Facts): LifecycleDecision {
  const { message, content, swarm, sender } = facts;
  const newMaster = content.newMaster ?? content.agentId;
  if (newMaster === undefined) return refuse("INVALID_FORMAT", "bad_member", "the new master is missing");
  const proven = provenChange(facts, newMaster);
  if (proven !== undefined) return proven;
  if (content.handovers !== undefined && content.handovers.length > 0) {
    // The announcement of an earlier change arrives late.
    if (!hasNewer(swarm, content.handovers)) return NOTHING;
    if (newMaster === swarm.master) return confirmedMaster(facts, content.handovers);
    // A key that this agent does not know yet may have signed the proofs: the sender tries again.
    return refuse("NOT_AUTHORIZED", "unproven_master", "the proofs of the new master cannot be checked yet");
  }
  if (newMaster === swarm.master) return NOTHING;
  if (sender !== swarm.master) return notMaster(content.action);
  const at = parseTime(content.changedAt ?? message.timestamp) ?? 0;
  // The announcement of an earlier change arrives late: the master has changed back since.
  if (at <= (swarm.handovers?.at(-1)?.at ?? 0)) return NOTHING;
  if (!swarm.members.has(newMaster)) {
    return refuse("NOT_AUTHORIZED", "not_a_member", "the new master is not a member of the swarm");
  }
  return changeMaster(swarm, { from: sender, to: newMaster, at });
}

/** Authority comes from the old masters' signatures, so the new master can show them itself. */
function provenChange(
  { content, swarm, selfId, sender, now }: Facts,
  newMaster: string,
): LifecycleDecision | undefined {
  const followed = followHandovers(swarm, content.handovers ?? [], now);
  if (followed?.master !== newMaster || !followed.isComplete) return undefined;
  const { handovers, introduced } = followed;
  const record = { ...toSwarmRecord(swarm), master: newMaster, handovers };
  const changes = newMaster !== swarm.master;
  // The old master may be gone, so the new one notifies all members as soon as it has the proof.
  const others = otherMembers(swarm, selfId, sender);
  return {
    writes: [
      { kind: "mesh.swarm.put", swarm: record },
      ...introduced.flatMap((member) => memberWrites(swarm, member)),
    ],
    ...(changes && { event: event("master_changed", newMaster, handovers.at(-1)?.from) }),
    ...(changes && sender !== swarm.master && { asksMaster: true }),
    ...(newMaster === selfId && { announcements: [announceMaster({ ...swarm, ...record }, others)] }),
  };
}

/** Proofs for the master that this agent already knows, of which an earlier one cannot be checked. */
function confirmedMaster(
  { swarm, selfId, sender, now }: Facts,
  proofs: readonly HandoverProof[],
): LifecycleDecision {
  const isTheirs = sender === swarm.master || sender === swarm.handovers?.at(-1)?.from;
  const handovers = isTheirs ? listedHandovers(swarm, proofs, now) : undefined;
  if (handovers === undefined) return NOTHING;
  const record = { ...toSwarmRecord(swarm), handovers };
  const others = otherMembers(swarm, selfId, sender);
  return {
    writes: [{ kind: "mesh.swarm.put", swarm: record }],
    ...(swarm.master === selfId && { announcements: [announceMaster({ ...swarm, ...record }, others)] }),
  };
}

/** A sender that is unknown here, but proves that it is the master. */
export function introducedMaster(message: MeshMessage, swarm: Swarm, now: number): Member | undefined {
  if (message.type !== "system" || swarm.bans.has(message.sender.agent_id)) return undefined;
  const reading = readSystemContent(message.content);
  if (!("content" in reading) || reading.content.action !== "master_changed") return undefined;
  const followed = followHandovers(swarm, reading.content.handovers ?? [], now);
  if (followed?.master !== message.sender.agent_id || !followed.isComplete) return undefined;
  return followed.introduced.find(({ agentId }) => agentId === followed.master);
}

/** Invites of the old master become invalid with its key; pending joins are removed with the record. */
function changeMaster(swarm: Swarm, handover: Handover): LifecycleDecision {
  const handovers = lastOf([...(swarm.handovers ?? []), handover]);
  const { from, to: master } = handover;
  return {
    writes: [{ kind: "mesh.swarm.put", swarm: { ...toSwarmRecord(swarm), master, handovers } }],
    event: event("master_changed", master, from),
  };
}

function memberLeft({ message, content, swarm, sender }: Facts): LifecycleDecision {
  if (content.agentId !== undefined && content.agentId !== sender) {
    return refuse("NOT_AUTHORIZED", "not_yourself", "an agent can send member_left only for itself");
  }
  if (sender === swarm.master) {
    return refuse("NOT_AUTHORIZED", "master_stays", "the master must transfer or dissolve the swarm");
  }
  const member = swarm.members.get(sender);
  const leftAt = parseCanonicalTime(message.timestamp) ?? 0;
  if (member === undefined) return NOTHING;
  const left = parseTime(content.joinedAt ?? "");
  // Clocks differ, so a leave that names no membership may seem to be a little older than the join.
  const isEarlier =
    left === undefined
      ? leftAt < member.joinedAt - TOLERANCE
      : left < member.joinedAt && leftAt < member.joinedAt;
  if (isEarlier) return NOTHING;
  return {
    writes: [{ kind: "mesh.member.remove", swarmId: swarm.id, agentId: sender }],
    event: event("member_left", sender),
  };
}

/** An extension: signed with the old key as every message, and contains a proof of the new one. */
function keyRotated({ content, swarm, sender, now }: Facts): LifecycleDecision {
  const member = swarm.members.get(sender);
  const parsed = parsePublicKey(content.publicKey ?? "");
  const proof = decodeBase64(content.proof ?? "");
  if (member === undefined || "reason" in parsed || proof === undefined) {
    return refuse("INVALID_FORMAT", "bad_rotation", "the new key or its proof is missing or invalid");
  }
  const proven = verifyWith(parsed.key, rotationText(swarm.id, sender, parsed.key.text), proof);
  if (!proven) return refuse("INVALID_SIGNATURE", "bad_rotation", "the proof of the new key is invalid");
  const renewed: Member = { ...member, publicKey: parsed.key.text };
  const { agentId, endpoint, publicKey } = renewed;
  return {
    writes: [
      { kind: "mesh.member.put", swarmId: swarm.id, member: renewed },
      { kind: "mesh.key.put", key: { agentId, publicKey, fetchedAt: now, endpoint } },
    ],
    event: event("key_rotated", sender),
  };
}

/** An extension: an agent moves. Only for itself, as every message signed with its own key. */
function endpointChanged({ content, swarm, sender }: Facts): LifecycleDecision {
  const member = swarm.members.get(sender);
  const { agentId = sender, endpoint } = content;
  if (agentId !== sender) {
    return refuse("NOT_AUTHORIZED", "not_yourself", "an agent can send endpoint_changed only for itself");
  }
  if (member === undefined || endpoint === undefined || checkEndpoint(endpoint) !== undefined) {
    return refuse("INVALID_FORMAT", "bad_member", "the new endpoint is missing or invalid");
  }
  if (member.endpoint === endpoint) return NOTHING;
  return {
    writes: [{ kind: "mesh.member.put", swarmId: swarm.id, member: { ...member, endpoint } }],
    event: event("endpoint_changed", sender),
  };
}

function event(action: string, agentId: string, initiatedBy?: string, reason?: string): LifecycleEvent {
  return {
    action,
    agentId,
    ...(initiatedBy !== undefined && { initiatedBy }),
    ...(reason !== undefined && { reason }),
  };
}

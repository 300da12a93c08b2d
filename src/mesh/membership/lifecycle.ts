/**
 * What a verified system message may change. Authority comes from the sender's role in the swarm as we know it, never
 * from what the message says about itself.
 */
import { type Refusal, refuse } from "../errors.js";
import { checkAgentId } from "../identity/agent-id.js";
import { decodeBase64 } from "../identity/base64.js";
import { parsePublicKey, verifyWith } from "../identity/keys.js";
import { checkEndpoint } from "../message/endpoint.js";
import type { MeshMessage } from "../message/types.js";
import { parseCanonicalTime, parseTime } from "../time.js";
import type { ViewWrite } from "../writes.js";
import { kickWrites } from "./operations.js";
import { rotationText } from "./rotation.js";
import { memberWrites } from "./sync.js";
import { readSystemContent, type SystemContent } from "./system-content.js";
import type { Member, Swarm } from "./types.js";

/** Something that happened to a membership, for those who watch. ASP: Lifecycle Event Notifications. */
export interface LifecycleEvent {
  readonly action: string;
  readonly agentId: string;
  readonly initiatedBy?: string;
  readonly reason?: string;
}

export type LifecycleDecision =
  | { readonly refusal: Refusal }
  | {
      readonly writes: readonly ViewWrite[];
      readonly event?: LifecycleEvent;
      /** A member whose key was not announced and has to be fetched before it can be added. */
      readonly introduce?: { readonly agentId: string; readonly endpoint: string; readonly joinedAt: number };
    };

const NOTHING: LifecycleDecision = { writes: [] };

/** A leave that is much older than the join it would undo belongs to an earlier membership. */
const TOLERANCE = 300_000;

export function decideLifecycle(message: MeshMessage, swarm: Swarm, selfId: string): LifecycleDecision {
  const reading = readSystemContent(message.content);
  if ("plain" in reading) return NOTHING;
  if ("problem" in reading) return refuse("INVALID_FORMAT", "ambiguous_content", reading.problem);
  const { content } = reading;
  const facts: Facts = { message, content, swarm, selfId, sender: message.sender.agent_id };
  switch (content.action) {
    case "member_joined":
      return asMaster(facts, memberJoined);
    case "member_kicked":
      return asMaster(facts, memberKicked);
    case "kicked":
      return asMaster(facts, kicked);
    case "swarm_dissolved":
      return asMaster(facts, dissolved);
    case "master_transfer":
      return masterTransfer(facts);
    case "master_changed":
      return masterChanged(facts);
    case "member_left":
      return memberLeft(facts);
    case "key_rotated":
      return keyRotated(facts);
    default:
      // A newer peer's word: kept as a message, without effect.
      return NOTHING;
  }
}

interface Facts {
  readonly message: MeshMessage;
  readonly content: SystemContent;
  readonly swarm: Swarm;
  readonly selfId: string;
  readonly sender: string;
}

function asMaster(facts: Facts, decide: (facts: Facts) => LifecycleDecision): LifecycleDecision {
  return facts.sender === facts.swarm.master ? decide(facts) : notMaster(facts.content.action);
}

function notMaster(action: string): { readonly refusal: Refusal } {
  return refuse("NOT_AUTHORIZED", "not_master", `only the master of the swarm may say ${action}`);
}

function memberJoined({ message, content, swarm, selfId }: Facts): LifecycleDecision {
  const { agentId, endpoint } = content;
  if (agentId === undefined || checkAgentId(agentId) !== undefined) {
    return refuse("INVALID_FORMAT", "bad_member", "the new member's agent_id is missing or invalid");
  }
  // A key that we have is never replaced by an announcement: that is what rotation is for.
  if (agentId === selfId || swarm.members.has(agentId)) return NOTHING;
  if (endpoint === undefined || checkEndpoint(endpoint) !== undefined) {
    return refuse("INVALID_FORMAT", "bad_member", "the new member's endpoint is missing or invalid");
  }
  const joinedAt = parseTime(content.joinedAt ?? message.timestamp) ?? 0;
  if (content.publicKey === undefined) return { writes: [], introduce: { agentId, endpoint, joinedAt } };
  const parsed = parsePublicKey(content.publicKey);
  if ("reason" in parsed)
    return refuse("INVALID_FORMAT", "bad_member", `the new member's key ${parsed.reason}`);
  const member: Member = { agentId, endpoint, publicKey: parsed.key.text, joinedAt };
  return { writes: memberWrites(swarm, member), event: joinEvent(agentId, swarm.master) };
}

export function joinEvent(agentId: string, master: string): LifecycleEvent {
  return { action: "member_joined", agentId, initiatedBy: master };
}

/** Who is out is remembered here, too: the next master may be this agent. */
function memberKicked(facts: Facts): LifecycleDecision {
  const { message, content, swarm, selfId, sender } = facts;
  if (content.agentId === undefined) return NOTHING;
  if (content.agentId === selfId) return kicked(facts);
  if (content.agentId === swarm.master) {
    return refuse("NOT_AUTHORIZED", "master_stays", "the master cannot be kicked");
  }
  const member = swarm.members.get(content.agentId);
  if (member === undefined) return NOTHING;
  const at = parseCanonicalTime(message.timestamp) ?? 0;
  return {
    writes: kickWrites(swarm.id, member, at, content.reason),
    event: event("member_kicked", content.agentId, sender, content.reason),
  };
}

function kicked({ content, swarm, selfId, sender }: Facts): LifecycleDecision {
  if (content.agentId !== undefined && content.agentId !== selfId) {
    return refuse("INVALID_FORMAT", "bad_member", "the kicked agent is another one");
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

function masterTransfer({ content, swarm, selfId, sender }: Facts): LifecycleDecision {
  const newMaster = content.newMaster ?? content.agentId;
  if (newMaster !== selfId) return refuse("INVALID_FORMAT", "bad_member", "the new master is another agent");
  // Heard before: the old master has not seen our answer.
  if (swarm.master === selfId) return NOTHING;
  if (sender !== swarm.master) return notMaster(content.action);
  return changeMaster(swarm, selfId, sender);
}

/**
 * Whether a message that was taken, now or before, has made this agent the master in the place of its sender. Who asked
 * must hear it: software that knows no transfers takes the message, too.
 */
export function tookMastership({ type, content, sender }: MeshMessage, swarm: Swarm | undefined): boolean {
  if (type !== "system" || swarm === undefined) return false;
  const reading = readSystemContent(content);
  return (
    "content" in reading && reading.content.action === "master_transfer" && swarm.master !== sender.agent_id
  );
}

function masterChanged({ content, swarm, sender }: Facts): LifecycleDecision {
  const newMaster = content.newMaster ?? content.agentId;
  if (newMaster === undefined) return refuse("INVALID_FORMAT", "bad_member", "no new master is named");
  if (newMaster === swarm.master) return NOTHING;
  if (sender !== swarm.master) return notMaster(content.action);
  if (!swarm.members.has(newMaster)) {
    return refuse("NOT_AUTHORIZED", "not_a_member", "the new master is not a member of the swarm");
  }
  return changeMaster(swarm, newMaster, sender);
}

/** Old invites die with the old master's key; what we had of our own dies with the record. */
function changeMaster(swarm: Swarm, master: string, by: string): LifecycleDecision {
  const { id, name, joinedAt, settings, alias } = swarm;
  return {
    writes: [{ kind: "mesh.swarm.put", swarm: { id, name, master, joinedAt, settings, alias } }],
    event: event("master_changed", master, by),
  };
}

function memberLeft({ message, content, swarm, sender }: Facts): LifecycleDecision {
  if (content.agentId !== undefined && content.agentId !== sender) {
    return refuse("NOT_AUTHORIZED", "not_yourself", "an agent can only leave for itself");
  }
  if (sender === swarm.master) {
    return refuse("NOT_AUTHORIZED", "master_stays", "the master must transfer or dissolve the swarm");
  }
  const member = swarm.members.get(sender);
  const leftAt = parseCanonicalTime(message.timestamp) ?? 0;
  if (member === undefined || leftAt < member.joinedAt - TOLERANCE) return NOTHING;
  return {
    writes: [{ kind: "mesh.member.remove", swarmId: swarm.id, agentId: sender }],
    event: event("member_left", sender),
  };
}

/** Ours: signed with the old key like every message, and with the new one inside. */
function keyRotated({ content, swarm, sender }: Facts): LifecycleDecision {
  const member = swarm.members.get(sender);
  const parsed = parsePublicKey(content.publicKey ?? "");
  const proof = decodeBase64(content.proof ?? "");
  if (member === undefined || "reason" in parsed || proof === undefined) {
    return refuse("INVALID_FORMAT", "bad_rotation", "the new key or its proof is missing or invalid");
  }
  const proven = verifyWith(parsed.key, rotationText(swarm.id, sender, parsed.key.text), proof);
  if (!proven) return refuse("INVALID_SIGNATURE", "bad_rotation", "the new key's proof does not hold");
  const renewed: Member = { ...member, publicKey: parsed.key.text };
  return {
    writes: [{ kind: "mesh.member.put", swarmId: swarm.id, member: renewed }],
    event: event("key_rotated", sender),
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

/**
 * How members learn of a new master. The old master signs a proof of each change, and the new one shows the proofs to
 * everybody: so a member follows a change even if the old master is gone. Pure.
 */
import { isUuid } from "../../base/index.js";
import { BROADCAST, checkAgentId } from "../identity/agent-id.js";
import { parsePublicKey } from "../identity/keys.js";
import { checkEndpoint } from "../message/endpoint.js";
import { verifySignature } from "../signature.js";
import { formatTime, parseCanonicalTime, parseTime } from "../time.js";
import { MOST_HANDOVERS, readSystemContent } from "./system-content.js";
import type { Handover, HandoverProof, Member, Swarm } from "./types.js";

/** Clocks may differ by this much between the agent that joined and the master that handed over. */
const TOLERANCE = 300_000;

export interface FollowedHandovers {
  readonly master: string;
  readonly handovers: readonly Handover[];
  /** Masters that this agent did not know. */
  readonly introduced: readonly Member[];
  /** Whether every proof could be checked. Otherwise the master is the last one that could. */
  readonly isComplete: boolean;
}

/**
 * Follows the proofs from the master that this agent knows to the current one. Each must be signed by the master before
 * it and be newer than the last known change, or a former master could show an old proof again. `undefined` when they
 * prove nothing new.
 */
export function followHandovers(
  swarm: Swarm,
  proofs: readonly HandoverProof[],
  now: number,
): FollowedHandovers | undefined {
  const known = swarm.handovers ?? [];
  const last = known.at(-1);
  // Known from an offer or an announcement without proof: the proof may follow.
  const isUnproven = last !== undefined && last.proof === undefined && last.to === swarm.master;
  const before = isUnproven ? known.slice(0, -1) : known;
  let master = isUnproven ? last.from : swarm.master;
  let since = before.at(-1)?.at ?? swarm.joinedAt - TOLERANCE;
  const followed: Handover[] = [];
  const introduced = new Map<string, Member>();
  let isComplete = true;
  for (const proof of proofs.slice(-MOST_HANDOVERS)) {
    const handover = readProof(proof, swarm.id);
    if (handover !== undefined && handover.at <= since) continue;
    const signer = introduced.get(proof.sender) ?? swarm.members.get(proof.sender);
    const isProven =
      handover?.from === master &&
      handover.at <= now + TOLERANCE &&
      (swarm.bans.get(handover.to)?.at ?? 0) < handover.at &&
      (swarm.members.has(handover.to) || handover.member !== undefined) &&
      signer !== undefined &&
      isSignedBy(proof, swarm.id, signer);
    isComplete &&= isProven;
    if (!isProven) break;
    const { member, ...change } = handover;
    if (member !== undefined && !swarm.members.has(handover.to)) introduced.set(handover.to, member);
    followed.push({ ...change, proof });
    master = handover.to;
    since = handover.at;
  }
  if (followed.length === 0) return undefined;
  const handovers = lastOf([...before, ...followed]);
  return { master, handovers, introduced: [...introduced.values()], isComplete };
}

/**
 * The changes up to the known master, as the master or its predecessor lists them. Their word decides, as for the member
 * list: keys that signed earlier changes may be unknown here. `undefined` if nothing is new.
 */
export function listedHandovers(
  swarm: Pick<Swarm, "id" | "master" | "handovers">,
  proofs: readonly HandoverProof[],
  now: number,
): readonly Handover[] | undefined {
  const listed = proofs.flatMap((proof): Handover[] => {
    const { member: _, ...handover } = readProof(proof, swarm.id) ?? {};
    return "at" in handover ? [{ ...handover, proof }] : [];
  });
  const last = listed.at(-1);
  const known = swarm.handovers?.at(-1);
  const isNews =
    last !== undefined && (last.at > (known?.at ?? 0) || (last.at === known?.at && !known.proof));
  return isNews && last.to === swarm.master && last.at <= now + TOLERANCE ? lastOf(listed) : undefined;
}

/** Whether proofs that could not be followed tell of a change that this agent does not know. */
export function hasNewer(swarm: Swarm, proofs: readonly HandoverProof[]): boolean {
  const since = swarm.handovers?.at(-1)?.at ?? swarm.joinedAt;
  return proofs.some((proof) => (readProof(proof, swarm.id)?.at ?? 0) > since);
}

export function lastOf(handovers: readonly Handover[]): readonly Handover[] {
  return handovers.slice(-MOST_HANDOVERS);
}

/** The proofs that lead to the current master, without those before a change that cannot be proven. */
export function proofsOf({ handovers = [] }: Pick<Swarm, "handovers">): readonly HandoverProof[] {
  const unproven = handovers.findLastIndex(({ proof }) => proof === undefined);
  return handovers.slice(unproven + 1).flatMap(({ proof }) => proof ?? []);
}

/** When a change becomes effective. Later than the last one, whatever the clocks of the two masters say. */
export function handoverTime({ handovers = [] }: Pick<Swarm, "handovers">, now: number): number {
  return Math.max(now, (handovers.at(-1)?.at ?? 0) + 1);
}

export interface HandoverContent {
  readonly swarmId: string;
  readonly from: string;
  readonly to: Member;
  readonly at: number;
  readonly proofs?: readonly HandoverProof[];
}

/** The content of `master_changed`. Names the new master's endpoint and key, for members that do not know it. */
export function writeHandover({ swarmId, from, to, at, proofs }: HandoverContent): string {
  return JSON.stringify({
    type: "system",
    action: "master_changed",
    swarm_id: swarmId,
    old_master: from,
    new_master: to.agentId,
    agent_id: to.agentId,
    endpoint: to.endpoint,
    public_key: to.publicKey,
    changed_at: formatTime(at),
    ...(proofs !== undefined && { handovers: proofs }),
  });
}

interface ReadProof extends Handover {
  readonly member?: Member;
}

function readProof(proof: HandoverProof, swarmId: string): ReadProof | undefined {
  const reading = readSystemContent(proof.content);
  if (!("content" in reading) || reading.content.action !== "master_changed") return undefined;
  const { newMaster, changedAt, endpoint, publicKey, swarmId: named } = reading.content;
  const at = parseTime(changedAt ?? "");
  if (newMaster === undefined || checkAgentId(newMaster) !== undefined || at === undefined) return undefined;
  // The signed text has no separators: fields of other shapes could be parts of another message.
  const isExact =
    named === swarmId &&
    isUuid(proof.message_id) &&
    parseCanonicalTime(proof.timestamp) !== undefined &&
    proof.recipient === BROADCAST;
  if (!isExact) return undefined;
  const key = parsePublicKey(publicKey ?? "");
  const isKnown = endpoint !== undefined && checkEndpoint(endpoint) === undefined && "key" in key;
  return {
    from: proof.sender,
    to: newMaster,
    at,
    ...(isKnown && { member: { agentId: newMaster, endpoint, publicKey: key.key.text, joinedAt: at } }),
  };
}

function isSignedBy(proof: HandoverProof, swarmId: string, { publicKey }: Member): boolean {
  const { message_id, timestamp, recipient, content, signature } = proof;
  const key = parsePublicKey(publicKey);
  const fields = { message_id, timestamp, swarm_id: swarmId, recipient, type: "system", content };
  return "key" in key && verifySignature(fields, signature, key.key) === "valid";
}

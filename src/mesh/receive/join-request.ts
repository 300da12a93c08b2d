/** The master's side of a join. */

import { isRecord, isUuid } from "../../base/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { MeshContext } from "../context.js";
import { refuse, type WireRefusal } from "../errors.js";
import { checkAgentId } from "../identity/agent-id.js";
import { parsePublicKey } from "../identity/keys.js";
import { readInvite } from "../invite/token.js";
import { proofsOf } from "../membership/handover.js";
import { decideJoin, type JoinDecision, type JoinRequest, joinFields } from "../membership/join.js";
import { announceJoin } from "../membership/operations.js";
import type { HandoverProof, Member, Swarm } from "../membership/types.js";
import { checkEndpoint } from "../message/endpoint.js";

import { prove } from "../send/delivery.js";
import { createPeers } from "../send/peers.js";
import { verifySignature } from "../signature.js";
import { formatTime, parseCanonicalTime } from "../time.js";

export type JoinResult =
  | { readonly refusal: WireRefusal }
  | { readonly kind: "accepted"; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: "pending"; readonly body: Readonly<Record<string, unknown>> };

/** Decides a join request that was read. The response waits for nothing but the store. */
export async function receiveJoin(context: MeshContext, request: ReadJoinRequest): Promise<JoinResult> {
  if ("refusal" in request) return request;
  const swarmId = request.invite.claims.swarmId;
  const decide = (): JoinDecision =>
    decideJoin(request, context.view.swarms.get(swarmId), context.id, context.now);
  const first = decide();
  if ("refusal" in first) return showMaster(context, first);
  // A signature proves the key, not that the endpoint belongs to the joining agent.
  const believed = request.proven && context.parts.options.checkJoiners !== "required";
  if (first.kind !== "member" && !believed) {
    const imposter = await checkJoiner(context, request);
    if (imposter !== undefined) return { refusal: imposter };
  }
  return context.exclusive(async () => {
    const decision = decide();
    if ("refusal" in decision) return decision;
    try {
      return await admit(context, decision);
    } catch (error) {
      // The store enforces the count of the invite.
      if (!(error instanceof RowConflictError) || error.kind !== "mesh.invite.use") throw error;
      return refuse("TOKEN_EXHAUSTED", "token_exhausted", "the invite has no uses left");
    }
  });
}

async function admit(
  context: MeshContext,
  decision: Exclude<JoinDecision, { readonly refusal: WireRefusal }>,
): Promise<JoinResult> {
  const { swarm } = decision;
  switch (decision.kind) {
    case "member":
      return { kind: "accepted", body: joinAnswer(context, swarm, [...swarm.members.values()]) };
    case "pending":
      if (decision.writes.length > 0) await context.commit(decision.writes, swarm.id);
      return {
        kind: "pending",
        body: { status: "pending", swarm_id: swarm.id, message: "The master must approve the request." },
      };
    case "admitted": {
      const members = [...swarm.members.values(), decision.member];
      await context.commit(decision.writes, swarm.id, [announceJoin(swarm, decision.member)]);
      const { agentId } = decision.member;
      await context.recordEvent(swarm.id, { action: "member_joined", agentId, initiatedBy: context.id });
      return { kind: "accepted", body: joinAnswer(context, swarm, members) };
    }
    default:
      return decision satisfies never;
  }
}

/**
 * The protocol's fields [ASP-OPER-04], `swarm_name` because the reference requires it (REF-38), and the rest of a
 * full record.
 */
function joinAnswer(
  context: MeshContext,
  swarm: Swarm,
  members: readonly Member[],
): Readonly<Record<string, unknown>> {
  const handovers = currentProofs(context, swarm);
  return {
    ...(handovers.length > 0 && { handovers }),
    status: "accepted",
    swarm_id: swarm.id,
    swarm_name: swarm.name,
    members: members.map(({ agentId, endpoint, publicKey, joinedAt }) => ({
      agent_id: agentId,
      endpoint,
      public_key: publicKey,
      joined_at: formatTime(joinedAt),
    })),
    name: swarm.name,
    settings: {
      allow_member_invite: swarm.settings.allowMemberInvite,
      require_approval: swarm.settings.requireApproval,
    },
  };
}

export type ReadJoinRequest = JoinRequest | { readonly refusal: WireRefusal };

export function readJoinRequest(context: MeshContext, value: unknown): ReadJoinRequest {
  const bad = (message: string): { readonly refusal: WireRefusal } =>
    refuse("INVALID_FORMAT", "invalid_format", message);
  if (!isRecord(value)) return bad("the body must be a JSON object");
  const { type, action, invite_token, sender } = value;
  if (type !== "system" || action !== "join_request")
    return bad("type and action must be system, join_request");
  if (typeof invite_token !== "string") return bad("invite_token must be a string");
  if (!isRecord(sender)) return bad("sender must be an object");
  const { agent_id, endpoint, public_key } = sender;
  if (typeof agent_id !== "string") return bad("sender.agent_id must be a string");
  const wrongId = checkAgentId(agent_id);
  if (wrongId !== undefined) return bad(`sender.agent_id ${wrongId}`);
  if (typeof endpoint !== "string") return bad("sender.endpoint must be a string");
  const wrongEndpoint = checkEndpoint(endpoint) ?? blockedEndpoint(context, endpoint);
  if (wrongEndpoint !== undefined) return bad(`sender.endpoint ${wrongEndpoint}`);
  const key = parsePublicKey(typeof public_key === "string" ? public_key : "");
  if ("reason" in key) return bad(`sender.public_key ${key.reason}`);
  const reading = readInvite(invite_token);
  if ("refusal" in reading) return reading;
  const { invite } = reading;
  const { message_id, timestamp, signature } = value;
  const asksOnly = value.asks_only === true;
  const request = { invite, agentId: agent_id, endpoint, publicKey: key.key.text, asksOnly };
  if (signature === undefined) return { ...request, proven: false };

  // An extension: a signature proves that the joining agent has the private key.
  if (typeof message_id !== "string" || typeof timestamp !== "string" || typeof signature !== "string") {
    return bad("a signed join request requires message_id, timestamp and signature as strings");
  }
  const at = isUuid(message_id) ? parseCanonicalTime(timestamp) : undefined;
  const { ahead } = context.parts.options.freshness;
  if (at === undefined || Math.abs(at - context.now) > ahead)
    return bad("the timestamp of the join request is not fresh");
  const fields = joinFields(message_id, timestamp, invite.claims.swarmId, context.id, invite_token);
  if (verifySignature(fields, signature, key.key) !== "valid") {
    return refuse(
      "INVALID_SIGNATURE",
      "invalid_signature",
      "the join request is not signed with its own key",
    );
  }
  return { ...request, proven: true };
}

/** Shows a member the way to the current master, signed with the current key: older proofs may name another one. */
function showMaster(
  context: MeshContext,
  { refusal, formerMaster }: { readonly refusal: WireRefusal; readonly formerMaster?: Swarm },
): { readonly refusal: WireRefusal } {
  if (formerMaster === undefined) return { refusal };
  const handovers = currentProofs(context, formerMaster);
  return { refusal: { ...refusal, details: { master: formerMaster.master, handovers } } };
}

function currentProofs(context: MeshContext, swarm: Swarm): readonly HandoverProof[] {
  return proofsOf(swarm).map((proof) =>
    proof.sender === context.id ? prove(context, swarm.id, proof.content) : proof,
  );
}

/** An endpoint that this agent never calls must not be announced to others, which might. */
function blockedEndpoint({ parts }: MeshContext, endpoint: string): string | undefined {
  return parts.checkUrl?.(endpoint) === undefined ? undefined : "is not on the public internet";
}

/** Checks that the endpoint belongs to the agent that requests to join. */
async function checkJoiner(
  context: MeshContext,
  { agentId, endpoint, publicKey }: JoinRequest,
): Promise<WireRefusal | undefined> {
  const { checkJoiners } = context.parts.options;
  if (checkJoiners === "off") return undefined;
  const info = await createPeers(context.parts.http, context.id, () => context.now).info(endpoint, agentId);
  if ("publicKey" in info) {
    if (info.publicKey === publicKey) return undefined;
    return refuse("NOT_AUTHORIZED", "imposter", "the endpoint serves another key").refusal;
  }
  if (info.unreachable && checkJoiners === "if_reachable") return undefined;
  return refuse(
    "NOT_AUTHORIZED",
    "endpoint_unconfirmed",
    `the endpoint could not be verified: ${info.reason}`,
  ).refusal;
}

/** Joining, at the master who is asked. */
import { RowConflictError } from "../engine/ports.js";
import type { MeshCore } from "./core.js";
import { type Refusal, refuse } from "./errors.js";
import { checkAgentId } from "./identity/agent-id.js";
import { parsePublicKey } from "./identity/keys.js";
import { readInvite } from "./invite/token.js";
import { decideJoin, type JoinDecision, type JoinRequest } from "./membership/join.js";
import { joinFields } from "./membership/join-fields.js";
import { announceJoin } from "./membership/operations.js";
import type { Member, Swarm } from "./membership/types.js";
import { isUuid } from "./message/check.js";
import { checkEndpoint } from "./message/endpoint.js";
import { isRecord } from "./message/extras.js";
import { createPeers } from "./peers.js";
import { verifySignature } from "./signature.js";
import { formatTime, parseCanonicalTime } from "./time.js";

export type JoinReception =
  | { readonly refusal: Refusal }
  | { readonly kind: "accepted"; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: "pending"; readonly body: Readonly<Record<string, unknown>> };

/** POST /swarm/join, after it was read. The answer does not wait for anybody but the store. */
export async function receiveJoin(core: MeshCore, request: ReadJoinRequest): Promise<JoinReception> {
  if ("refusal" in request) return request;
  const swarmId = request.invite.claims.swarmId;
  const decide = (): JoinDecision => decideJoin(request, core.view.swarms.get(swarmId), core.id, core.now);
  const first = decide();
  if ("refusal" in first) return first;
  // A signature shows that the joiner has the key, not that the endpoint is its own.
  const believed = request.proven && core.parts.options.checkJoiners !== "required";
  if (first.kind !== "member" && !believed) {
    const imposter = await checkJoiner(core, request);
    if (imposter !== undefined) return { refusal: imposter };
  }
  return core.exclusive(async () => {
    const decision = decide();
    if ("refusal" in decision) return decision;
    try {
      return await admit(core, decision);
    } catch (error) {
      // Behind the decision stands the store's own count.
      if (!(error instanceof RowConflictError) || error.kind !== "mesh.invite.use") throw error;
      return refuse("TOKEN_EXHAUSTED", "token_exhausted", "the invite has been used as often as it may be");
    }
  });
}

async function admit(
  core: MeshCore,
  decision: Exclude<JoinDecision, { readonly refusal: Refusal }>,
): Promise<JoinReception> {
  const { swarm } = decision;
  switch (decision.kind) {
    case "member":
      return { kind: "accepted", body: joinAnswer(swarm, [...swarm.members.values()]) };
    case "pending":
      if (decision.writes.length > 0) await core.commit(decision.writes, swarm.id);
      return {
        kind: "pending",
        body: { status: "pending", swarm_id: swarm.id, message: "The master has to approve the request." },
      };
    case "admitted": {
      const members = [...swarm.members.values(), decision.member];
      await core.commit(decision.writes, swarm.id, [announceJoin(swarm, decision.member)]);
      const { agentId } = decision.member;
      await core.note(swarm.id, { action: "member_joined", agentId, initiatedBy: core.id });
      return { kind: "accepted", body: joinAnswer(swarm, members) };
    }
    default:
      return decision satisfies never;
  }
}

/** The seed's fields, `swarm_name` because the reference cannot do without it, and what makes a full record. */
function joinAnswer(swarm: Swarm, members: readonly Member[]): Readonly<Record<string, unknown>> {
  return {
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

export type ReadJoinRequest = JoinRequest | { readonly refusal: Refusal };

export function readJoinRequest(core: MeshCore, value: unknown): ReadJoinRequest {
  const bad = (message: string): { readonly refusal: Refusal } =>
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
  const wrongEndpoint = checkEndpoint(endpoint);
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

  // Ours: a join that is signed shows that the joiner has the key it comes with.
  if (typeof message_id !== "string" || typeof timestamp !== "string" || typeof signature !== "string") {
    return bad("a signed join needs message_id, timestamp and signature as strings");
  }
  const at = isUuid(message_id) ? parseCanonicalTime(timestamp) : undefined;
  const { ahead } = core.parts.options.freshness;
  if (at === undefined || Math.abs(at - core.now) > ahead)
    return bad("the timestamp of the join is not fresh");
  const fields = joinFields(message_id, timestamp, invite.claims.swarmId, core.id, invite_token);
  if (verifySignature(fields, signature, key.key) !== "valid") {
    return refuse(
      "INVALID_SIGNATURE",
      "invalid_signature",
      "the join is not signed with the key it comes with",
    );
  }
  return { ...request, proven: true };
}

/** Whether the endpoint that wants to join is the agent it says it is. */
async function checkJoiner(
  core: MeshCore,
  { agentId, endpoint, publicKey }: JoinRequest,
): Promise<Refusal | undefined> {
  const { checkJoiners } = core.parts.options;
  if (checkJoiners === "off") return undefined;
  const info = await createPeers(core.parts.http, core.id, () => core.now).info(endpoint, agentId);
  if ("publicKey" in info) {
    if (info.publicKey === publicKey) return undefined;
    return refuse("NOT_AUTHORIZED", "imposter", "the endpoint shows another key").refusal;
  }
  if (info.unreachable && checkJoiners === "if_reachable") return undefined;
  return refuse(
    "NOT_AUTHORIZED",
    "endpoint_unconfirmed",
    `the endpoint could not be confirmed: ${info.reason}`,
  ).refusal;
}

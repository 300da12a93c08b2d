/**
 * The mesh for admins over HTTP. What changes the agent's identity or ends a swarm stays on the machine (decision C4):
 * `mailroom mesh` does it.
 */
import { z } from "zod";
import { hasCode, isMailroomError, isPublicError, MailroomError } from "../../base/index.js";
import { keyFingerprint } from "../../base/node.js";
import { ADMINS, defineRoute, NO_INPUT, type Route } from "../../extension/index.js";
import { type AdminParts, operate, type Swarm } from "../../mesh/index.js";

const OPERATIONS = [
  "approve",
  "reject",
  "invite",
  "revoke",
  "kick",
  "unban",
  "mute",
  "unmute",
  "send",
  "alias",
] as const;

const OperationPath = z.object({
  operation: z.enum(OPERATIONS).meta({ description: "As in `mailroom mesh`; the body has its arguments." }),
});
const Arguments = z.record(z.string(), z.unknown()).meta({ id: "MeshArguments" });

const Agent = z.object({
  agent_id: z.string(),
  endpoint: z.string(),
  fingerprint: z.string().meta({ description: "SHA-256 of the public key, in groups of four." }),
});

const MeshOverview = z
  .object({
    agent_id: z.string(),
    endpoint: z.string(),
    fingerprint: z.string(),
    muted_agents: z.array(z.string()),
    muted_swarms: z.array(z.string()),
    inbox: z.record(z.string(), z.number()),
    outbox: z.record(z.string(), z.number()),
    swarms: z.array(
      z.object({
        swarm_id: z.string(),
        name: z.string(),
        alias: z.string(),
        master: z.string(),
        is_master: z.boolean(),
        joined_at: z.number(),
        muted: z.boolean(),
        settings: z.object({ allow_member_invite: z.boolean(), require_approval: z.boolean() }),
        members: z.array(
          z.object({
            ...Agent.shape,
            joined_at: z.number(),
            sealed: z.boolean().meta({ description: "Whether it seals its messages." }),
          }),
        ),
        pending: z.array(z.object({ ...Agent.shape, requested_at: z.number() })),
        invites: z.array(
          z.object({
            key: z.string(),
            uses: z.int(),
            max_uses: z.int().nullable(),
            created_at: z.number(),
            expires_at: z.number().nullable(),
            revoked_at: z.number().nullable(),
          }),
        ),
        bans: z.array(z.object({ agent_id: z.string(), at: z.number(), reason: z.string().nullable() })),
      }),
    ),
  })
  .meta({
    id: "MeshOverview",
    description: "This server's mesh agent and its swarms. Times are milliseconds.",
  });

const MeshResult = z.record(z.string(), z.unknown()).meta({ id: "MeshResult" });

export function meshAdminRoutes(parts: AdminParts): Route[] {
  return [
    defineRoute({
      ...NO_INPUT,
      id: "adminGetMesh",
      method: "GET",
      path: "/admin/mesh",
      tag: "mesh",
      summary: "Show the mesh agent, its swarms and their members",
      access: ADMINS,
      answers: { 200: { description: "The mesh as this agent knows it.", schema: MeshOverview } },
      handle: async () => ({ status: 200, body: await overview(parts) }),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminOperateMesh",
      method: "POST",
      path: "/admin/mesh/{operation}",
      tag: "mesh",
      summary: "Change members, invites, mutes and aliases, or send a message",
      access: ADMINS,
      params: OperationPath,
      body: Arguments,
      bodyOptional: true,
      answers: { 200: { description: "The action that was taken.", schema: MeshResult } },
      errors: ["bad_input", "unknown_item", "overloaded", "store_busy", "store_failed"],
      async handle({ params, body, request }, caller) {
        try {
          const done = await operate(parts, params.operation, body);
          request.log.info({ admin: caller.principal.id, operation: params.operation }, "mesh operation");
          return { status: 200, body: done };
        } catch (error) {
          throw toPublic(error);
        }
      },
    }),
  ];
}

async function overview({ agent, reads }: AdminParts): Promise<z.output<typeof MeshOverview>> {
  const { identity } = agent.context.parts;
  const { mutedAgents, mutedSwarms, sealingKeys } = agent.context.view;
  return {
    agent_id: identity.agentId,
    endpoint: identity.endpoint,
    fingerprint: keyFingerprint(agent.context.pair.publicKey.text),
    muted_agents: [...mutedAgents.keys()],
    muted_swarms: [...mutedSwarms.keys()],
    inbox: await reads.inboxCounts(),
    outbox: await reads.sentCounts(),
    swarms: agent.swarms.map((swarm) => ({
      ...swarmFacts(swarm),
      is_master: swarm.master === agent.id,
      muted: mutedSwarms.has(swarm.id),
      members: [...swarm.members.values()].map((member) => ({
        ...agentFacts(member),
        joined_at: member.joinedAt,
        sealed: sealingKeys.has(member.publicKey),
      })),
      pending: agent
        .pending(swarm.id)
        .map((join) => ({ ...agentFacts(join), requested_at: join.requestedAt })),
    })),
  };
}

function swarmFacts({ id, name, alias, master, joinedAt, settings, invites, bans }: Swarm) {
  return {
    swarm_id: id,
    name,
    alias,
    master,
    joined_at: joinedAt,
    settings: {
      allow_member_invite: settings.allowMemberInvite,
      require_approval: settings.requireApproval,
    },
    invites: [...invites.values()].map(({ key, uses, maxUses, createdAt, expiresAt, revokedAt }) => ({
      key,
      uses,
      max_uses: maxUses ?? null,
      created_at: createdAt,
      expires_at: expiresAt ?? null,
      revoked_at: revokedAt ?? null,
    })),
    bans: [...bans.values()].map(({ agentId, at, reason }) => ({
      agent_id: agentId,
      at,
      reason: reason ?? null,
    })),
  };
}

function agentFacts(agent: {
  readonly agentId: string;
  readonly endpoint: string;
  readonly publicKey: string;
}) {
  return { agent_id: agent.agentId, endpoint: agent.endpoint, fingerprint: keyFingerprint(agent.publicKey) };
}

/** Errors of the mesh, as the HTTP interface has them. */
function toPublic(error: unknown): unknown {
  if (!isMailroomError(error) || isPublicError(error)) return error;
  const { code, message } = error;
  const isMissing = hasCode(error, "swarm_not_found", "member_not_found", "message_not_found");
  return new MailroomError(isMissing ? "unknown_item" : "bad_input", message, { details: { mesh: code } });
}

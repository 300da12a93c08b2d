/** Operations on swarms and their members. */
import { z } from "zod";
import { MeshError } from "../errors.js";
import type { Swarm } from "../membership/types.js";
import { formatTime } from "../time.js";
import { type Operation, operation, swarmNamed } from "./operation.js";

const swarm = z.string().min(1).optional();
const agent = z.string().min(1);
const reason = z.string().max(1_000).optional();
const alias = z.string().optional();
const HOUR = 3_600_000;

export const SWARM_OPERATIONS = {
  create: operation(
    z.object({
      name: z.string(),
      alias,
      allow_member_invite: z.boolean().default(false),
      require_approval: z.boolean().default(false),
    }),
    async ({ node }, args) => {
      const made = await node.create(args.name, {
        allowMemberInvite: args.allow_member_invite,
        requireApproval: args.require_approval,
        ...(args.alias !== undefined && { alias: args.alias }),
      });
      return { status: "created", ...brief(made) };
    },
  ),
  invite: operation(
    z.object({
      swarm,
      /** Hours; 0 for one that never expires. */
      expires: z.number().min(0).optional(),
      max_uses: z.number().int().min(1).optional(),
    }),
    async ({ node }, args) => {
      const { id } = swarmNamed(node, args.swarm);
      const lifetime = args.expires === 0 ? null : (args.expires ?? 24) * HOUR;
      const url = await node.invite(id, {
        lifetime,
        ...(args.max_uses !== undefined && { maxUses: args.max_uses }),
      });
      return { status: "success", swarm_id: id, invite_token: url };
    },
  ),
  revoke: operation(z.object({ swarm, invite: z.string() }), async ({ node }, args) => {
    const { id } = swarmNamed(node, args.swarm);
    await node.revoke(id, args.invite);
    return { status: "revoked", swarm_id: id };
  }),
  join: operation(z.object({ token: z.string(), alias }), async ({ node }, args) => {
    try {
      const { swarm: joined, wasMember } = await node.join(
        args.token,
        args.alias === undefined ? {} : { alias: args.alias },
      );
      return {
        status: wasMember ? "already_member" : "joined",
        ...brief(joined),
        member_count: joined.members.size,
      };
    } catch (error) {
      if (!(error instanceof MeshError) || error.code !== "pending") throw error;
      return { status: "pending", message: error.message };
    }
  }),
  pending: operation(z.object({ swarm }), ({ node }, args) => {
    const { id } = swarmNamed(node, args.swarm);
    const pending = node.pending(id).map(({ agentId, endpoint, publicKey, requestedAt }) => ({
      agent_id: agentId,
      endpoint,
      public_key: publicKey,
      requested_at: formatTime(requestedAt),
    }));
    return { swarm_id: id, pending };
  }),
  approve: onMember("approved", (node, id, agentId) => node.approve(id, agentId)),
  reject: onMember("rejected", (node, id, agentId) => node.reject(id, agentId)),
  kick: onMember("kicked", (node, id, agentId, why) => node.kick(id, agentId, why)),
  unban: onMember("unbanned", async (node, id, agentId) => {
    const { master, bans, name } = node.swarm(id);
    // Only the master knows who is banned; anybody else is told to ask it.
    if (master === node.id && !bans.has(agentId))
      throw new MeshError("member_not_found", `${agentId} is not banned from ${name}`);
    await node.unban(id, agentId);
  }),
  transfer: onMember("offered", (node, id, agentId) => node.transfer(id, agentId)),
  leave: operation(z.object({ swarm }), async ({ node }, args) => {
    const left = swarmNamed(node, args.swarm);
    await node.leave(left.id);
    return { status: "left", swarm_id: left.id, name: left.name };
  }),
  dissolve: operation(z.object({ swarm, reason }), async ({ node }, args) => {
    const ended = swarmNamed(node, args.swarm);
    await node.dissolve(ended.id, args.reason);
    return { status: "dissolved", swarm_id: ended.id, name: ended.name };
  }),
  alias: operation(z.object({ swarm, alias: z.string() }), async ({ node }, args) => {
    const { id } = swarmNamed(node, args.swarm);
    await node.setAlias(id, args.alias);
    return { status: "named", swarm_id: id, alias: args.alias };
  }),
  list: operation(z.object({ swarm, members: z.boolean().default(false) }), ({ node }, args) => {
    const wanted = args.swarm === undefined ? node.swarms : [swarmNamed(node, args.swarm)];
    return { swarms: wanted.map((one) => described(one, args.members)) };
  }),
} satisfies Record<string, Operation>;

function onMember(
  status: string,
  work: (
    node: Parameters<Operation["run"]>[0]["node"],
    swarmId: string,
    agentId: string,
    reason?: string,
  ) => Promise<void>,
): Operation {
  return operation(z.object({ swarm, agent, reason }), async ({ node }, args) => {
    const { id } = swarmNamed(node, args.swarm);
    await work(node, id, args.agent, args.reason);
    return { status, swarm_id: id, agent_id: args.agent };
  });
}

function brief({ id, name, alias, master }: Swarm) {
  return { swarm_id: id, name, alias, master };
}

function described(one: Swarm, withMembers: boolean) {
  return {
    ...brief(one),
    settings: {
      allow_member_invite: one.settings.allowMemberInvite,
      require_approval: one.settings.requireApproval,
    },
    member_count: one.members.size,
    joined_at: formatTime(one.joinedAt),
    members: withMembers
      ? [...one.members.values()].map(({ agentId, endpoint, publicKey, joinedAt }) => ({
          agent_id: agentId,
          endpoint,
          public_key: publicKey,
          joined_at: formatTime(joinedAt),
        }))
      : null,
    invites: [...one.invites.values()].map(({ key, uses, maxUses, expiresAt, revokedAt }) => ({
      key,
      uses,
      max_uses: maxUses ?? null,
      expires_at: expiresAt === undefined ? null : formatTime(expiresAt),
      revoked: revokedAt !== undefined,
    })),
  };
}

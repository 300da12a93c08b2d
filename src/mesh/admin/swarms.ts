/** Operations on swarms and their members. */

import { z } from "zod";
import { hasCode, MailroomError } from "../../base/index.js";
import type { Swarm } from "../membership/types.js";
import { formatTime } from "../time.js";
import { type AdminOperation, operation, swarmNamed } from "./operation.js";

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
    async ({ agent }, args) => {
      const made = await agent.create(args.name, {
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
      /** Hours; 0 for an invite that never expires. */
      expires: z.number().min(0).optional(),
      max_uses: z.number().int().min(1).optional(),
    }),
    async ({ agent }, args) => {
      const { id } = swarmNamed(agent, args.swarm);
      const lifetime = args.expires === 0 ? null : (args.expires ?? 24) * HOUR;
      const url = await agent.invite(id, {
        lifetime,
        ...(args.max_uses !== undefined && { maxUses: args.max_uses }),
      });
      return { status: "success", swarm_id: id, invite_token: url };
    },
  ),
  revoke: operation(z.object({ swarm, invite: z.string() }), async ({ agent }, args) => {
    const { id } = swarmNamed(agent, args.swarm);
    await agent.revoke(id, args.invite);
    return { status: "revoked", swarm_id: id };
  }),
  join: operation(z.object({ token: z.string(), alias }), async ({ agent }, args) => {
    try {
      const { swarm: joined, wasMember } = await agent.join(
        args.token,
        args.alias === undefined ? {} : { alias: args.alias },
      );
      return {
        status: wasMember ? "already_member" : "joined",
        ...brief(joined),
        member_count: joined.members.size,
      };
    } catch (error) {
      if (!hasCode(error, "pending")) throw error;
      return { status: "pending", message: error.message };
    }
  }),
  pending: operation(z.object({ swarm }), ({ agent }, args) => {
    const { id } = swarmNamed(agent, args.swarm);
    const pending = agent.pending(id).map(({ agentId, endpoint, publicKey, requestedAt, inviteKey }) => ({
      agent_id: agentId,
      endpoint,
      public_key: publicKey,
      requested_at: formatTime(requestedAt),
      invite: inviteKey,
    }));
    return { swarm_id: id, pending };
  }),
  approve: onMember("approved", (agent, id, agentId) => agent.approve(id, agentId)),
  reject: onMember("rejected", (agent, id, agentId) => agent.reject(id, agentId)),
  kick: operation(z.object({ swarm, agent, reason }), async ({ agent }, args) => {
    const { id, members } = swarmNamed(agent, args.swarm);
    const invite = members.get(args.agent)?.inviteKey;
    await agent.kick(id, args.agent, args.reason);
    // The agent may come back under another name if its invite can be used again.
    return { status: "kicked", swarm_id: id, agent_id: args.agent, ...(invite !== undefined && { invite }) };
  }),
  unban: onMember("unbanned", async (agent, id, agentId) => {
    const { master, bans, name } = agent.swarm(id);
    // Only the master has the list of bans; other members get its refusal.
    if (master === agent.id && !bans.has(agentId))
      throw new MailroomError("member_not_found", `${agentId} is not banned from ${name}`);
    await agent.unban(id, agentId);
  }),
  transfer: onMember("offered", (agent, id, agentId) => agent.transfer(id, agentId)),
  leave: operation(z.object({ swarm }), async ({ agent }, args) => {
    const left = swarmNamed(agent, args.swarm);
    await agent.leave(left.id);
    return { status: "left", swarm_id: left.id, name: left.name };
  }),
  dissolve: operation(z.object({ swarm, reason }), async ({ agent }, args) => {
    const ended = swarmNamed(agent, args.swarm);
    await agent.dissolve(ended.id, args.reason);
    return { status: "dissolved", swarm_id: ended.id, name: ended.name };
  }),
  alias: operation(z.object({ swarm, alias: z.string() }), async ({ agent }, args) => {
    const { id } = swarmNamed(agent, args.swarm);
    await agent.setAlias(id, args.alias);
    return { status: "named", swarm_id: id, alias: args.alias };
  }),
  sync: operation(z.object({ swarm }), async ({ agent }, args) => {
    const { id, name, master, members: before } = swarmNamed(agent, args.swarm);
    if (master === agent.id) {
      throw new MailroomError("is_master", `this agent is the master of ${name}: its own list decides`);
    }
    const known = new Set(before.keys());
    const { conflicts } = await agent.sync(id);
    const { members } = agent.swarm(id);
    return {
      status: "synchronized",
      swarm_id: id,
      master,
      member_count: members.size,
      added: [...members.keys()].filter((one) => !known.has(one)),
      removed: [...known].filter((one) => !members.has(one)),
      conflicts,
    };
  }),
  ping: operation(z.object({ swarm, agent }), async ({ agent: self }, args) => {
    const one = swarmNamed(self, args.swarm);
    const member = one.members.get(args.agent);
    if (member === undefined) {
      throw new MailroomError("member_not_found", `${args.agent} is not a member of ${one.name}`);
    }
    const found = await self.ping(member);
    return {
      status: found.key === "matches" ? "reachable" : "wrong_key",
      swarm_id: one.id,
      agent_id: member.agentId,
      endpoint: member.endpoint,
      ...found,
    };
  }),
  list: operation(z.object({ swarm, members: z.boolean().default(false) }), ({ agent }, args) => {
    const wanted = args.swarm === undefined ? agent.swarms : [swarmNamed(agent, args.swarm)];
    return { swarms: wanted.map((one) => described(one, args.members)) };
  }),
} satisfies Record<string, AdminOperation>;

function onMember(
  status: string,
  work: (
    agent: Parameters<AdminOperation["run"]>[0]["agent"],
    swarmId: string,
    agentId: string,
  ) => Promise<void>,
): AdminOperation {
  return operation(z.object({ swarm, agent }), async ({ agent }, args) => {
    const { id } = swarmNamed(agent, args.swarm);
    await work(agent, id, args.agent);
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
      ? [...one.members.values()].map(({ agentId, endpoint, publicKey, joinedAt, inviteKey }) => ({
          agent_id: agentId,
          endpoint,
          public_key: publicKey,
          joined_at: formatTime(joinedAt),
          ...(inviteKey !== undefined && { invite: inviteKey }),
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

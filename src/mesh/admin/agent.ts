/** Operations on the agent itself: mutes, key, state and records. */
import { join } from "node:path";
import { z } from "zod";
import type { Swarm } from "../membership/types.js";
import { changeEndpoint, rotateKeyFile } from "../setup.js";
import { formatTime } from "../time.js";
import { waitingShown } from "./messages.js";
import { type AdminOperation, type AdminParts, operation, swarmNamed } from "./operation.js";

/** Recipients that `status` lists. */
const MOST_WAITING = 100;
const HOUR = 3_600_000;

const Muted = z.object({ agent: z.string().min(1).optional(), swarm: z.string().min(1).optional() });
const EITHER = "give either an agent or a swarm";

function isOne({ agent, swarm }: z.output<typeof Muted>): boolean {
  return (agent === undefined) !== (swarm === undefined);
}

export const AGENT_OPERATIONS = {
  mute: operation(
    Muted.extend({ reason: z.string().optional() }).refine(isOne, EITHER),
    async ({ agent }, args) => {
      const [type, id] = mutedOf(agent, args);
      await agent.mute(type, id, args.reason);
      return { status: "muted", type, id };
    },
  ),
  unmute: operation(Muted.refine(isOne, EITHER), async ({ agent }, args) => {
    const [type, id] = mutedOf(agent, args);
    return { status: "unmuted", type, id, was_muted: await agent.unmute(type, id) };
  }),
  status: operation(z.object({ verbose: z.boolean().default(false) }), async (parts, { verbose }) => {
    const { agent, reads, directory } = parts;
    const { identity } = agent.context;
    const { mutedAgents, mutedSwarms } = agent.context.view;
    return {
      status: "initialized",
      agent_id: identity.agentId,
      endpoint: identity.endpoint,
      public_key: agent.context.pair.publicKey.text,
      config_path: join(directory, "mesh", "agent.json"),
      db_path: join(directory, "mailroom.db"),
      swarm_count: agent.swarms.length,
      muted_agents: [...mutedAgents.keys()],
      muted_swarms: [...mutedSwarms.keys()],
      inbox: await reads.inboxCounts(),
      outbox: await reads.sentCounts(),
      pending_joins: agent.pendingJoins,
      waiting: (await agent.waiting(MOST_WAITING)).map((one) => ({
        recipient: one.recipientId,
        swarm: agent.context.view.swarms.get(one.swarmId)?.alias ?? one.swarmId,
        ...waitingShown(one),
        message_id: one.messageId,
      })),
      ...(verbose && { swarms: await Promise.all(agent.swarms.map((one) => swarmStatus(parts, one))) }),
    };
  }),
  rotate_key: operation(z.object({}), async ({ agent, directory }) => {
    const { publicKey, revokedInvites } = await rotateKeyFile(directory, agent);
    return {
      status: "rotated",
      agent_id: agent.id,
      public_key: publicKey,
      // Sealing members run Mailroom and understand key rotation; for the listed members that is unknown.
      may_refuse_it: membersThatNeverSealed(agent),
      revoked_invites: revokedInvites,
    };
  }),
  endpoint: operation(z.object({ endpoint: z.string() }), async ({ agent, directory }, { endpoint }) => {
    await changeEndpoint(directory, agent, endpoint);
    // Members of other software ignore the announcement.
    return { status: "moved", agent_id: agent.id, endpoint, may_ignore_it: membersThatNeverSealed(agent) };
  }),
  export: operation(z.object({}), ({ agent }) => agent.exportState()),
  import: operation(
    z.object({ state: z.string(), merge: z.boolean().default(false), force: z.boolean().default(false) }),
    async ({ agent }, { state, merge, force }) => {
      const mode = merge ? "merge" : "replace";
      const { counts, conflicts, schemaVersion } = await agent.importState(state, { mode, force });
      const { swarms, publicKeys, mutedAgents, mutedSwarms, inbox } = counts;
      return {
        status: "imported",
        merge,
        schema_version: schemaVersion,
        swarms,
        public_keys: publicKeys,
        muted_agents: mutedAgents,
        muted_swarms: mutedSwarms,
        inbox,
        conflicts,
      };
    },
  ),
  purge: operation(
    z.object({
      messages: z.boolean().default(false),
      include_archived: z.boolean().default(false),
      retention_hours: z.number().min(0).default(24),
    }),
    async ({ agent }, { messages, include_archived, retention_hours }) => {
      const before = agent.context.now - retention_hours * HOUR;
      await agent.purge({
        ...(messages && { deletedBefore: before }),
        ...(messages && include_archived && { archivedBefore: before }),
      });
      return { status: "purged", messages, include_archived, retention_hours };
    },
  ),
} satisfies Record<string, AdminOperation>;

function membersThatNeverSealed({ id, swarms, context }: AdminParts["agent"]): string[] {
  const others = swarms
    .flatMap(({ members }) => [...members.values()])
    .filter(({ agentId }) => agentId !== id);
  const unsealed = others.filter(({ publicKey }) => !context.view.sealingKeys.has(publicKey));
  return [...new Set(unsealed.map(({ agentId }) => agentId))].sort();
}

/** The status of a swarm: its master, and what is waiting to be decided, read and delivered. */
async function swarmStatus(
  { agent, reads }: AdminParts,
  { id, name, alias, master, members, joinedAt }: Swarm,
) {
  return {
    swarm_id: id,
    name,
    alias,
    master,
    member_count: members.size,
    joined_at: formatTime(joinedAt),
    muted: agent.context.view.mutedSwarms.has(id),
    pending_joins: agent.pending(id).length,
    inbox: await reads.inboxCounts(id),
    outbox: await reads.sentCounts(id),
  };
}

function mutedOf(
  agent: Parameters<typeof swarmNamed>[0],
  { agent: muted, swarm }: z.output<typeof Muted>,
): ["agent" | "swarm", string] {
  return muted === undefined ? ["swarm", swarmNamed(agent, swarm).id] : ["agent", muted];
}

/** Operations on the agent itself: its mutes, key, state and records. */
import { join } from "node:path";
import { z } from "zod";
import type { Swarm } from "../membership/types.js";
import { rotateKeyFile } from "../setup.js";
import { formatTime } from "../time.js";
import { type Operation, type OperatorParts, operation, swarmNamed } from "./operation.js";

const HOUR = 3_600_000;

/** Exactly one of them. */
const Muted = z
  .object({ agent: z.string().min(1).optional(), swarm: z.string().min(1).optional() })
  .refine(({ agent, swarm }) => (agent === undefined) !== (swarm === undefined), "give an agent or a swarm");

export const AGENT_OPERATIONS = {
  mute: operation(
    z.intersection(Muted, z.object({ reason: z.string().optional() })),
    async ({ node }, args) => {
      const [type, id] = mutedOf(node, args);
      await node.mute(type, id, args.reason);
      return { status: "muted", type, id };
    },
  ),
  unmute: operation(Muted, async ({ node }, args) => {
    const [type, id] = mutedOf(node, args);
    return { status: "unmuted", type, id, was_muted: await node.unmute(type, id) };
  }),
  status: operation(z.object({ verbose: z.boolean().default(false) }), async (parts, { verbose }) => {
    const { node, reads, directory } = parts;
    const { identity } = node.core.parts;
    const { mutedAgents, mutedSwarms } = node.core.view;
    return {
      status: "initialized",
      agent_id: identity.agentId,
      endpoint: identity.endpoint,
      public_key: node.core.pair.publicKey.text,
      config_path: join(directory, "mesh", "agent.json"),
      db_path: join(directory, "mailroom.db"),
      swarm_count: node.swarms.length,
      muted_agents: [...mutedAgents.keys()],
      muted_swarms: [...mutedSwarms.keys()],
      inbox: await reads.inboxCounts(),
      outbox: await reads.sentCounts(),
      ...(verbose && { swarms: await Promise.all(node.swarms.map((one) => swarmStatus(parts, one))) }),
    };
  }),
  rotate_key: operation(z.object({}), async ({ node, directory }) => ({
    status: "rotated",
    agent_id: node.id,
    public_key: await rotateKeyFile(directory, node),
    // Whoever seals is a Mailroom and knows what a new key is; of these nobody can tell.
    may_refuse_it: membersThatNeverSealed(node),
  })),
  export: operation(z.object({}), ({ node }) => node.exportState()),
  import: operation(
    z.object({ state: z.string(), merge: z.boolean().default(false), force: z.boolean().default(false) }),
    async ({ node }, { state, merge, force }) => {
      const mode = merge ? "merge" : "replace";
      const { counts, conflicts, schemaVersion } = await node.importState(state, { mode, force });
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
    async ({ node }, { messages, include_archived, retention_hours }) => {
      const before = node.core.now - retention_hours * HOUR;
      await node.purge({
        ...(messages && { deletedBefore: before }),
        ...(messages && include_archived && { archivedBefore: before }),
      });
      return { status: "purged", messages, include_archived, retention_hours };
    },
  ),
} satisfies Record<string, Operation>;

function membersThatNeverSealed({ id, swarms, core }: OperatorParts["node"]): string[] {
  const others = swarms
    .flatMap(({ members }) => [...members.values()])
    .filter(({ agentId }) => agentId !== id);
  const unsealed = others.filter(({ publicKey }) => !core.view.sealingKeys.has(publicKey));
  return [...new Set(unsealed.map(({ agentId }) => agentId))].sort();
}

/** How a swarm is doing: who leads it, what waits to be decided, read and delivered. */
async function swarmStatus(
  { node, reads }: OperatorParts,
  { id, name, alias, master, members, joinedAt }: Swarm,
) {
  return {
    swarm_id: id,
    name,
    alias,
    master,
    member_count: members.size,
    joined_at: formatTime(joinedAt),
    muted: node.core.view.mutedSwarms.has(id),
    pending_joins: node.pending(id).length,
    inbox: await reads.inboxCounts(id),
    outbox: await reads.sentCounts(id),
  };
}

function mutedOf(
  node: Parameters<typeof swarmNamed>[0],
  { agent, swarm }: z.output<typeof Muted>,
): ["agent" | "swarm", string] {
  return agent === undefined ? ["swarm", swarmNamed(node, swarm).id] : ["agent", agent];
}

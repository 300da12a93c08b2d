/** Operations on the agent itself: its mutes, key, state and records. */
import { join } from "node:path";
import { z } from "zod";
import { rotateKeyFile } from "../setup.js";
import { type Operation, operation, swarmNamed } from "./operation.js";

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
  status: operation(z.object({}), async ({ node, reads, directory }) => {
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
    };
  }),
  rotate_key: operation(z.object({}), async ({ node, directory }) => ({
    status: "rotated",
    agent_id: node.id,
    public_key: await rotateKeyFile(directory, node),
  })),
  export: operation(z.object({}), ({ node }) => node.exportState()),
  import: operation(
    z.object({ state: z.string(), merge: z.boolean().default(false), force: z.boolean().default(false) }),
    async ({ node }, { state, merge, force }) => {
      const mode = merge ? "merge" : "replace";
      const { counts, conflicts } = await node.importState(state, { mode, force });
      const { swarms, publicKeys, inbox } = counts;
      return { status: "imported", merge, swarms, public_keys: publicKeys, inbox, conflicts };
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

function mutedOf(
  node: Parameters<typeof swarmNamed>[0],
  { agent, swarm }: z.output<typeof Muted>,
): ["agent" | "swarm", string] {
  return agent === undefined ? ["swarm", swarmNamed(node, swarm).id] : ["agent", agent];
}

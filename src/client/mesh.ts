/** The mesh as the server's agent knows it, and operations on it. */
import * as z from "zod/mini";
import { callOptions } from "./options.js";
import type { CallOptions, Transport, WriteOptions } from "./transport.js";
import { AnyObject } from "./wire.js";

const agent = {
  agent_id: z.string(),
  endpoint: z.string(),
  /** SHA-256 of the public key, in groups of four. */
  fingerprint: z.string(),
};
const counts = z.record(z.string(), z.number());

const MeshOverview = z.looseObject({
  ...agent,
  muted_agents: z.array(z.string()),
  muted_swarms: z.array(z.string()),
  /** Received messages by status. */
  inbox: counts,
  /** Sent messages by status. */
  outbox: counts,
  swarms: z.array(
    z.looseObject({
      swarm_id: z.string(),
      name: z.string(),
      alias: z.string(),
      master: z.string(),
      is_master: z.boolean(),
      joined_at: z.number(),
      muted: z.boolean(),
      settings: z.looseObject({ allow_member_invite: z.boolean(), require_approval: z.boolean() }),
      /** `sealed`: whether the member seals its messages. */
      members: z.array(z.looseObject({ ...agent, joined_at: z.number(), sealed: z.boolean() })),
      pending: z.array(z.looseObject({ ...agent, requested_at: z.number() })),
      invites: z.array(
        z.looseObject({
          key: z.string(),
          uses: z.number(),
          max_uses: z.nullable(z.number()),
          created_at: z.number(),
          expires_at: z.nullable(z.number()),
          revoked_at: z.nullable(z.number()),
        }),
      ),
      bans: z.array(z.looseObject({ agent_id: z.string(), at: z.number(), reason: z.nullable(z.string()) })),
    }),
  ),
});
/** The server's agent in the mesh, its swarms and their members. Times are milliseconds. */
export type MeshOverview = z.infer<typeof MeshOverview>;

/** What an admin can do in the mesh over HTTP. `mailroom mesh` does the rest on the server's machine. */
export type MeshOperation =
  | "approve"
  | "reject"
  | "invite"
  | "revoke"
  | "kick"
  | "unban"
  | "mute"
  | "unmute"
  | "send"
  | "alias";

export function getMesh(transport: Transport, options: CallOptions): Promise<MeshOverview> {
  return transport.json({ method: "GET", path: "/admin/mesh", ...callOptions(options) }, MeshOverview);
}

export function operateMesh(
  transport: Transport,
  operation: MeshOperation,
  body: Readonly<Record<string, unknown>>,
  options: WriteOptions,
): Promise<Readonly<Record<string, unknown>>> {
  const path = `/admin/mesh/${operation}`;
  return transport.json({ method: "POST", path, body, ...callOptions(options) }, AnyObject);
}

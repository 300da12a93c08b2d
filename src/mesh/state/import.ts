/** ASP: State Portability. Decides all changes of an import before the first row is written. */
import type { Member, MembershipView, SwarmRecord } from "../membership/types.js";
import type { MessageType } from "../message/types.js";
import { MESSAGE_TYPES } from "../message/types.js";
import { type BoxStatus, type QueuedMessage, queueKey } from "../messages.js";
import type { MeshRowWrite } from "../writes.js";
import type { StateDocument } from "./format.js";

export interface ImportContext {
  readonly view: MembershipView;
  /** This agent, as it is now. */
  readonly self: Member;
  readonly now: number;
  /** Returns a free alias for a swarm without one. */
  readonly aliasFor: (name: string, taken: ReadonlySet<string>) => string;
}

export interface ImportDecision {
  readonly writes: readonly MeshRowWrite[];
  /** Contradictions between the file and the local state; the local state was kept. */
  readonly conflicts: readonly string[];
  readonly schemaVersion: string;
  /** Contents of the file; for keys, only the new ones. */
  readonly counts: {
    readonly swarms: number;
    readonly publicKeys: number;
    readonly mutedAgents: number;
    readonly mutedSwarms: number;
    readonly inbox: number;
  };
}

export function decideImport(
  file: StateDocument,
  mode: "merge" | "replace",
  context: ImportContext,
): ImportDecision {
  const { view, now, self } = context;
  const local: MembershipView =
    mode === "merge"
      ? view
      : { ...view, swarms: new Map(), mutedAgents: new Map(), mutedSwarms: new Map(), keys: new Map() };
  const sparing = Object.values(file.swarms).map(({ swarm_id }) => swarm_id);
  const writes: MeshRowWrite[] = mode === "replace" ? [{ kind: "mesh.clear", sparing }] : [];
  const conflicts: string[] = [];
  // Swarms that keep their alias: all local ones in a merge, those of the file in a replacement.
  const staying = [...view.swarms.values()].filter(({ id }) => mode === "merge" || sparing.includes(id));
  const aliases = new Set(staying.map(({ alias }) => alias));

  for (const swarm of Object.values(file.swarms)) {
    const known = local.swarms.get(swarm.swarm_id);
    if (known === undefined) {
      const alias = view.swarms.get(swarm.swarm_id)?.alias ?? context.aliasFor(swarm.name, aliases);
      aliases.add(alias);
      const record: SwarmRecord = {
        id: swarm.swarm_id,
        name: swarm.name,
        master: swarm.master,
        joinedAt: swarm.joined_at,
        settings: {
          allowMemberInvite: swarm.settings.allow_member_invite,
          requireApproval: swarm.settings.require_approval,
        },
        alias,
      };
      writes.push({ kind: "mesh.swarm.put", swarm: record });
    } else if (known.master !== swarm.master) {
      // Reported, because a file must not change the master.
      conflicts.push(
        `swarm ${swarm.swarm_id}: the file names ${swarm.master} as the master, the local state ${known.master}`,
      );
    }
    const bans = view.swarms.get(swarm.swarm_id)?.bans;
    for (const { agent_id, endpoint, public_key, joined_at } of swarm.members) {
      const there = known?.members.get(agent_id);
      if (bans?.has(agent_id) === true) {
        conflicts.push(`swarm ${swarm.swarm_id}: ${agent_id} was kicked and is not added again`);
      } else if (there === undefined) {
        // The file may be older than this agent's current key and endpoint.
        const who = agent_id === self.agentId ? self : { agentId: agent_id, endpoint, publicKey: public_key };
        const member: Member = { ...who, joinedAt: joined_at };
        writes.push({ kind: "mesh.member.put", swarmId: swarm.swarm_id, member });
      } else if (there.publicKey !== public_key && agent_id !== self.agentId) {
        conflicts.push(`swarm ${swarm.swarm_id}: the local key of ${agent_id} differs and was kept`);
      }
    }
  }
  for (const id of file.muted_agents) {
    if (!local.mutedAgents.has(id))
      writes.push({ kind: "mesh.mute.put", mute: { of: "agent", id, at: now } });
  }
  for (const id of file.muted_swarms) {
    if (!local.mutedSwarms.has(id))
      writes.push({ kind: "mesh.mute.put", mute: { of: "swarm", id, at: now } });
  }
  let publicKeys = 0;
  for (const [agentId, { public_key: publicKey, fetched_at: fetchedAt, endpoint }] of Object.entries(
    file.public_keys,
  )) {
    const there = local.keys.get(agentId);
    if (there !== undefined && there.publicKey !== publicKey) {
      conflicts.push(`the cached local key of ${agentId} differs and was kept`);
      continue;
    }
    if (there !== undefined && there.fetchedAt >= fetchedAt) continue;
    // A time in the future would keep the key from being fetched again.
    const key = {
      agentId,
      publicKey,
      fetchedAt: Math.min(fetchedAt, now),
      ...(endpoint != null && { endpoint }),
    };
    writes.push({ kind: "mesh.key.put", key });
    publicKeys += 1;
  }
  const messages = importedMessages(file, now);
  writes.push(...messages.map((message): MeshRowWrite => ({ kind: "mesh.queue.put", message })));
  return {
    writes,
    conflicts,
    schemaVersion: file.schema_version,
    counts: {
      swarms: Object.keys(file.swarms).length,
      publicKeys,
      mutedAgents: file.muted_agents.length,
      mutedSwarms: file.muted_swarms.length,
      inbox: messages.length,
    },
  };
}

/** Imported messages can be read and are retained from now on like others; they trigger nothing. */
function importedMessages(file: StateDocument, now: number): QueuedMessage[] {
  const inbox = (file.inbox ?? []).map((item) => ({ item, box: boxOf(item.status) }));
  // 1.0.0 files of the reference: unprocessed messages count as unread.
  const queue = (file.message_queue ?? []).map((item) => ({
    item,
    box: item.status === "pending" || item.status === "processing" ? ("unread" as const) : ("read" as const),
  }));
  return [...inbox, ...queue].map(({ item, box }): QueuedMessage => {
    const type: MessageType =
      MESSAGE_TYPES.find((one) => one === (item.message_type ?? item.type)) ?? "message";
    return {
      id: queueKey(item.swarm_id, item.sender_id, item.message_id),
      messageId: item.message_id,
      swarmId: item.swarm_id,
      senderId: item.sender_id,
      type,
      content: item.content,
      envelope: item.content,
      receivedAt: item.received_at,
      processedAt: now,
      status: "completed",
      box,
      ...(item.recipient_id != null && { recipientId: item.recipient_id }),
    };
  });
}

function boxOf(status: string): BoxStatus {
  const known: readonly BoxStatus[] = ["unread", "read", "archived", "deleted"];
  return known.find((one) => one === status) ?? "read";
}

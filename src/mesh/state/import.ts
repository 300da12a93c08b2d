/** ASP: State Portability. What an import changes: all of it decided before the first row is written. */
import type { Member, MeshView, SwarmRecord } from "../membership/types.js";
import type { MessageType } from "../message/types.js";
import { MESSAGE_TYPES } from "../message/types.js";
import { type BoxStatus, type QueuedMessage, queueKey } from "../queue.js";
import type { MeshRowWrite } from "../writes.js";
import type { StateFile } from "./file.js";

export interface ImportContext {
  readonly view: MeshView;
  /** This agent as it is now. */
  readonly self: Member;
  readonly now: number;
  /** A free alias for a swarm that has none here. */
  readonly aliasFor: (name: string, taken: ReadonlySet<string>) => string;
}

export interface ImportDecision {
  readonly writes: readonly MeshRowWrite[];
  /** What was left as it is here, because the file contradicts it. */
  readonly conflicts: readonly string[];
  readonly schemaVersion: string;
  /** What the file has; of keys, those that are new here. */
  readonly counts: {
    readonly swarms: number;
    readonly publicKeys: number;
    readonly mutedAgents: number;
    readonly mutedSwarms: number;
    readonly inbox: number;
  };
}

export function decideImport(
  file: StateFile,
  mode: "merge" | "replace",
  context: ImportContext,
): ImportDecision {
  const { view, now, self } = context;
  const local: MeshView =
    mode === "merge"
      ? view
      : { ...view, swarms: new Map(), mutedAgents: new Map(), mutedSwarms: new Map(), keys: new Map() };
  const sparing = Object.values(file.swarms).map(({ swarm_id }) => swarm_id);
  const writes: MeshRowWrite[] = mode === "replace" ? [{ kind: "mesh.clear", sparing }] : [];
  const conflicts: string[] = [];
  // Those that stay: what is here, or is in the file and has a name here already.
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
      // Never silently: a file must not make somebody the master.
      conflicts.push(
        `swarm ${swarm.swarm_id}: the file's master is ${swarm.master}, here it is ${known.master}`,
      );
    }
    const bans = view.swarms.get(swarm.swarm_id)?.bans;
    for (const { agent_id, endpoint, public_key, joined_at } of swarm.members) {
      const there = known?.members.get(agent_id);
      if (bans?.has(agent_id) === true) {
        conflicts.push(`swarm ${swarm.swarm_id}: ${agent_id} was kicked here and stays out`);
      } else if (there === undefined) {
        // Of ourselves nobody knows the key and the place better: the file may be from before they changed.
        const who = agent_id === self.agentId ? self : { agentId: agent_id, endpoint, publicKey: public_key };
        const member: Member = { ...who, joinedAt: joined_at };
        writes.push({ kind: "mesh.member.put", swarmId: swarm.swarm_id, member });
      } else if (there.publicKey !== public_key && agent_id !== self.agentId) {
        conflicts.push(`swarm ${swarm.swarm_id}: another key of ${agent_id} is known here and was kept`);
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
      conflicts.push(`another cached key of ${agentId} is known here and was kept`);
      continue;
    }
    if (there !== undefined && there.fetchedAt >= fetchedAt) continue;
    const key = { agentId, publicKey, fetchedAt, ...(endpoint != null && { endpoint }) };
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

/** Old messages are there to be read, for as long as others are from now; none of them wakes anybody. */
function importedMessages(file: StateFile, now: number): QueuedMessage[] {
  const inbox = (file.inbox ?? []).map((item) => ({ item, box: boxOf(item.status) }));
  // 1.0.0 files of the reference: what was not processed counts as unread.
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

/**
 * ASP: Swarm Subagent Context. Data from other agents that accompanies a message to local agents, beside its body. What a
 * peer wrote in private accompanies the messages of its own thread only.
 */

import type { MeshAgent } from "../agent.js";
import { cutTo } from "../message/check.js";
import type { QueuedMessage } from "../messages.js";
import type { MeshReads } from "../ports.js";
import { formatTime } from "../time.js";

export interface MessageContextOptions {
  /** Default 10, at most 100. */
  readonly messages: number;
  /** Includes only messages of the last `minutes`; without it, messages of any age. */
  readonly minutes?: number;
}

export interface MessageContext {
  readonly swarm: {
    readonly id: string;
    readonly name: string;
    readonly master: string;
    /** Only the first members, if there are many. */
    readonly members: readonly string[];
    readonly member_count: number;
  };
  readonly recent_messages: readonly {
    readonly from: string;
    readonly at: string;
    readonly content: string;
  }[];
  readonly muted_agents: readonly string[];
  readonly muted_swarms: readonly string[];
  /** These two are counted up to 1,000. */
  readonly unread_count: number;
  readonly pending_count: number;
}

export async function buildMessageContext(
  agent: MeshAgent,
  reads: MeshReads,
  message: QueuedMessage,
  { messages, minutes }: MessageContextOptions,
): Promise<MessageContext | undefined> {
  const { view } = agent.context;
  const swarm = view.swarms.get(message.swarmId);
  if (swarm === undefined) return undefined;
  const { senderId, threadId = message.messageId } = message;
  // One more, because the message itself is among them.
  const limit = Math.min(messages, 100) + 1;
  const recent = await reads.context({ swarmId: swarm.id, senderId, threadId, limit });
  const since = minutes === undefined ? 0 : agent.context.now - minutes * 60_000;
  const { id, name, master, members } = swarm;
  return {
    swarm: {
      id,
      name,
      master,
      members: [...members.keys()].slice(0, MEMBERS),
      member_count: members.size,
    },
    recent_messages: recent
      .filter(({ receivedAt, id }) => receivedAt >= since && id !== message.id)
      .slice(0, limit - 1)
      .map(({ senderId, receivedAt, content }) => ({
        from: senderId,
        at: formatTime(receivedAt),
        content: briefly(content),
      })),
    muted_agents: [...view.mutedAgents.keys()],
    muted_swarms: [...view.mutedSwarms.keys()],
    unread_count: await reads.unreadCount(swarm.id, COUNTED),
    pending_count: await reads.queuedCount("pending", COUNTED),
  };
}

/** Long messages of one peer, or a long member list, must not make every task long and expensive. */
const EXCERPT = 2_000;
const MEMBERS = 50;
/** Higher counts carry no information, and counting would cost time for each message. */
const COUNTED = 1_000;

function briefly(content: string): string {
  const excerpt = cutTo(content, EXCERPT);
  return excerpt === content ? content : `${excerpt}…`;
}

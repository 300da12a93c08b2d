/** The first questions about an incoming message: is it for us, of our swarm, from a member, fresh? */
import { type Refusal, refuse } from "../errors.js";
import { BROADCAST } from "../identity/agent-id.js";
import type { MeshMessage } from "../message/types.js";
import { parseCanonicalTime, parseTime } from "../time.js";
import type { Member, MeshView, Swarm } from "./types.js";

export interface Freshness {
  /** Milliseconds that a timestamp may lie in the future. */
  readonly ahead: number;
  /** … and in the past. Replay records are kept longer than this. */
  readonly behind: number;
}

export const DEFAULT_FRESHNESS: Freshness = { ahead: 300_000, behind: 86_400_000 };

export type Admission = { readonly swarm: Swarm; readonly member: Member } | { readonly refusal: Refusal };

/** ASP: Authorization. Nothing is fetched and nothing is written on behalf of who does not pass here. */
export function admitMessage(
  message: MeshMessage,
  selfId: string,
  view: MeshView,
  joining: ReadonlySet<string>,
): Admission {
  if (message.recipient !== selfId && message.recipient !== BROADCAST) {
    return refuse("NOT_AUTHORIZED", "wrong_recipient", "the message is for another agent");
  }
  const swarm = view.swarms.get(message.swarm_id);
  if (swarm === undefined) {
    // The master announces a joiner before the joiner has its answer: the message is early, not wrong.
    if (joining.has(message.swarm_id)) {
      return refuse("UNAVAILABLE", "joining", "a join of this swarm is under way", { retryAfter: 2 });
    }
    return refuse("SWARM_NOT_FOUND", "unknown_swarm", "this agent is not in the swarm");
  }
  const member = swarm.members.get(message.sender.agent_id);
  if (member === undefined || member.agentId === selfId) {
    return refuse("NOT_AUTHORIZED", "not_a_member", "the sender is not a member of the swarm");
  }
  return { swarm, member };
}

export function checkFreshness(
  message: MeshMessage,
  now: number,
  { ahead, behind }: Freshness,
): Refusal | undefined {
  const sentAt = parseCanonicalTime(message.timestamp) ?? Number.NaN;
  const stale = (reason: string, text: string): Refusal =>
    refuse("INVALID_FORMAT", reason, text, { details: { reason } }).refusal;
  if (!(sentAt <= now + ahead)) return stale("timestamp_in_future", "the timestamp lies in the future");
  if (sentAt < now - behind) return stale("timestamp_too_old", "the timestamp is too old: sign it anew");
  const expires = message.expires_at === undefined ? undefined : parseTime(message.expires_at);
  if (expires !== undefined && expires <= now) return stale("expired", "the message has expired");
  return undefined;
}

export function isMuted(view: MeshView, swarmId: string, senderId: string): boolean {
  return view.mutedAgents.has(senderId) || view.mutedSwarms.has(swarmId);
}

/** The first checks of an incoming message: recipient, swarm, sender and freshness. */
import { refuse, type WireRefusal } from "../errors.js";
import { BROADCAST } from "../identity/agent-id.js";
import type { MeshMessage } from "../message/types.js";
import { parseCanonicalTime, parseTime } from "../time.js";
import type { Member, MembershipView, Swarm } from "./types.js";

export interface Freshness {
  /** Milliseconds that a timestamp may be in the future. */
  readonly ahead: number;
  /** Milliseconds that a timestamp may be in the past. Replay records are kept longer than this. */
  readonly behind: number;
}

export const DEFAULT_FRESHNESS: Freshness = { ahead: 300_000, behind: 86_400_000 };

export type Admission =
  | { readonly swarm: Swarm; readonly member: Member }
  | { readonly refusal: WireRefusal };

/** ASP: Authorization. Nothing is fetched or written for a message that fails here. */
export function admitMessage(
  message: MeshMessage,
  selfId: string,
  view: MembershipView,
  joining: ReadonlySet<string>,
): Admission {
  if (message.recipient !== selfId && message.recipient !== BROADCAST) {
    return refuse("NOT_AUTHORIZED", "wrong_recipient", "the message is addressed to another agent");
  }
  const swarm = view.swarms.get(message.swarm_id);
  if (swarm === undefined) {
    // The master announces a new member before that member has its response: the message is early, not wrong.
    if (joining.has(message.swarm_id)) {
      return refuse("UNAVAILABLE", "joining", "this agent is joining the swarm: try again", {
        retryAfter: 2,
      });
    }
    return refuse("SWARM_NOT_FOUND", "unknown_swarm", "this agent is not a member of the swarm");
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
): WireRefusal | undefined {
  const sentAt = parseCanonicalTime(message.timestamp) ?? Number.NaN;
  const stale = (reason: string, text: string): WireRefusal =>
    refuse("INVALID_FORMAT", reason, text, { details: { reason } }).refusal;
  if (!(sentAt <= now + ahead)) return stale("timestamp_in_future", "the timestamp is in the future");
  if (sentAt < now - behind)
    return stale("timestamp_too_old", "the timestamp is too old: sign the message again");
  const expires = message.expires_at === undefined ? undefined : parseTime(message.expires_at);
  if (expires !== undefined && expires <= now) return stale("expired", "the message has expired");
  return undefined;
}

export function isMuted(view: MembershipView, swarmId: string, senderId: string): boolean {
  return view.mutedAgents.has(senderId) || view.mutedSwarms.has(swarmId);
}

/**
 * ASP: Swarm Operations. A lifecycle message is a signed message of type `system` whose content is a JSON object with
 * an `action`. Fields beside the content are unsigned and never acted on.
 */

import { isRecord } from "../../base/index.js";
import { parseJsonText } from "../../mail/index.js";
import type { HandoverProof } from "./types.js";

export interface SystemContent {
  readonly action: string;
  readonly agentId?: string;
  readonly endpoint?: string;
  readonly publicKey?: string;
  readonly joinedAt?: string;
  readonly newMaster?: string;
  readonly reason?: string;
  readonly swarmId?: string;
  /** Of a `member_kicked` that a later master announces again. */
  readonly kickedAt?: string;
  /** Of `master_changed`. */
  readonly changedAt?: string;
  readonly handovers?: readonly HandoverProof[];
  /** Of `key_rotated`: the signature of the new key. */
  readonly proof?: string;
}

export type SystemMessageResult =
  | { readonly content: SystemContent }
  /** Not a lifecycle message: stored as text, without effect. */
  | { readonly plain: true }
  /** Ambiguous: two parsers could read it differently. */
  | { readonly problem: string };

export function readSystemContent(text: string): SystemMessageResult {
  let value: unknown;
  try {
    const parsed = parseJsonText(text);
    if (parsed.duplicateKeys.length > 0) return { problem: "the content has a duplicate key" };
    value = parsed.value;
  } catch {
    return readPasted(text);
  }
  if (!isRecord(value) || typeof value.action !== "string") return { plain: true };
  const field = (name: string): string | undefined => {
    const found = value[name];
    return typeof found === "string" && found !== "" ? found : undefined;
  };
  const optional = {
    // One published schema names it `member`.
    agentId: field("agent_id") ?? field("member"),
    endpoint: field("endpoint"),
    publicKey: field("public_key"),
    joinedAt: field("joined_at"),
    newMaster: field("new_master"),
    reason: field("reason"),
    proof: field("proof"),
    swarmId: field("swarm_id")?.toLowerCase(),
    kickedAt: field("kicked_at"),
    changedAt: field("changed_at"),
    handovers: readProofs(value.handovers),
  };
  const given = Object.fromEntries(Object.entries(optional).filter(([, found]) => found !== undefined));
  return { content: { action: value.action, ...given } };
}

/** Older changes of the master are forgotten: a member that missed more of them has to join again. */
export const MOST_HANDOVERS = 8;

/** Reads the proofs of changes of the master in a message. Invalid ones are left out. */
export function readProofs(value: unknown): readonly HandoverProof[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.slice(-MOST_HANDOVERS).flatMap((one: unknown): HandoverProof[] => {
    if (!isRecord(one)) return [];
    const { sender, message_id, timestamp, recipient, content, signature } = one;
    return typeof sender === "string" &&
      typeof message_id === "string" &&
      typeof timestamp === "string" &&
      typeof recipient === "string" &&
      typeof content === "string" &&
      typeof signature === "string"
      ? [{ sender, message_id, timestamp, recipient, content, signature }]
      : [];
  });
}

/**
 * The reference inserts the reason of a kick into the JSON without escaping, so a reason with quotes makes it
 * invalid. The part before the reason names the kicked agent, and it is signed.
 */
const PASTED = /^\{"action":"(kicked|member_kicked)","agent_id":"([\w.-]+)","reason":"(.*)"\}$/su;

function readPasted(text: string): SystemMessageResult {
  const [, action, agentId, reason] = PASTED.exec(text) ?? [];
  if (action === undefined || agentId === undefined) return { plain: true };
  return { content: { action, agentId, ...(reason && { reason }) } };
}

type Fields = Readonly<Record<string, string | undefined>>;

/** Always includes `agent_id`: peers ignore content without it. */
export function writeSystemContent(action: string, agentId: string, rest: Fields = {}): string {
  return JSON.stringify({ action, agent_id: agentId, ...rest });
}

/** What the new key signs in a `key_rotated` message. Bound to swarm and agent, so that it is valid nowhere else. */
export function rotationText(swarmId: string, agentId: string, publicKey: string): Buffer {
  return Buffer.from(`mailroom key rotation\n${swarmId}\n${agentId}\n${publicKey}`, "utf8");
}

/**
 * ASP: Swarm Operations. Lifecycle traffic is a signed message of type `system` whose content is a JSON object with an
 * `action`. What stands beside the content is unsigned and never acted on.
 */
import { parseJsonText } from "../../mail/swarm-file/json-text.js";
import { isRecord } from "../message/extras.js";

export interface SystemContent {
  readonly action: string;
  readonly agentId?: string;
  readonly endpoint?: string;
  readonly publicKey?: string;
  readonly joinedAt?: string;
  readonly newMaster?: string;
  readonly reason?: string;
  /** Of `key_rotated`: the new key's signature. */
  readonly proof?: string;
}

export type SystemReading =
  | { readonly content: SystemContent }
  /** Not a lifecycle message: kept as text, without effect. */
  | { readonly plain: true }
  /** Two readers could see two different things in it. */
  | { readonly problem: string };

export function readSystemContent(text: string): SystemReading {
  let value: unknown;
  try {
    const parsed = parseJsonText(text);
    if (parsed.duplicateKeys.length > 0) return { problem: "the content has a key twice" };
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
    // One published schema calls it `member`.
    agentId: field("agent_id") ?? field("member"),
    endpoint: field("endpoint"),
    publicKey: field("public_key"),
    joinedAt: field("joined_at"),
    newMaster: field("new_master"),
    reason: field("reason"),
    proof: field("proof"),
  };
  const given = Object.fromEntries(Object.entries(optional).filter(([, found]) => found !== undefined));
  return { content: { action: value.action, ...given } };
}

/**
 * The reference pastes the reason of a kick between quotes as it is; one with quotes of its own is no JSON. Everything
 * before the reason says who is out, and that is signed.
 */
const PASTED = /^\{"action":"(kicked|member_kicked)","agent_id":"([\w.-]+)","reason":"(.*)"\}$/su;

function readPasted(text: string): SystemReading {
  const [, action, agentId, reason] = PASTED.exec(text) ?? [];
  if (action === undefined || agentId === undefined) return { plain: true };
  return { content: { action, agentId, ...(reason && { reason }) } };
}

type Fields = Readonly<Record<string, string | undefined>>;

/** `agent_id` is always there: peers ignore what lacks it. */
export function writeSystemContent(action: string, agentId: string, rest: Fields = {}): string {
  return JSON.stringify({ action, agent_id: agentId, ...rest });
}

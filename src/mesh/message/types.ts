/** ASP: Message Format, with the names of the wire. */
import { MAX_MESSAGE_BYTES } from "../settings.js";

export const ASP_VERSION = "0.1.0";

export const MESSAGE_TYPES = ["message", "system", "notification"] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

export const PRIORITIES = ["low", "normal", "high"] as const;
export type Priority = (typeof PRIORITIES)[number];

export interface Reference {
  readonly type: string;
  readonly repo?: string;
  readonly number?: number;
  readonly sha?: string;
  readonly url?: string;
  readonly action?: string;
}

export interface Attachment {
  readonly type: "url" | "inline";
  readonly mime_type: string;
  readonly content: string;
}

/** Not covered by the protocol's signature: hints only, nothing may rely on them. */
export interface MessageExtras {
  readonly in_reply_to?: string;
  readonly thread_id?: string;
  readonly priority?: Priority;
  readonly expires_at?: string;
  readonly attachments?: readonly Attachment[];
  readonly references?: readonly Reference[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface MeshMessage extends MessageExtras {
  readonly protocol_version: string;
  readonly message_id: string;
  readonly timestamp: string;
  readonly sender: { readonly agent_id: string; readonly endpoint: string };
  readonly recipient: string;
  readonly swarm_id: string;
  readonly type: MessageType;
  readonly content: string;
  readonly signature: string;
}

export const LIMITS = {
  contentCharacters: 65_536,
  bodyBytes: MAX_MESSAGE_BYTES,
  attachments: 16,
  inlineBytes: 1024 * 1024,
  references: 64,
  metadataKeys: 64,
  metadataBytes: 16 * 1024,
  urlCharacters: 2_048,
  nameCharacters: 256,
  /** Of one swarm. A list of them fits into the answer to a join. */
  members: 10_000,
} as const;

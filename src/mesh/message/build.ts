/** Builds messages that every peer accepts: canonical timestamps, no nulls, default priority omitted. */

import { isRecord, isUuid, MailroomError } from "../../base/index.js";
import type { KeyPair } from "../identity/keys.js";
import { signFields } from "../signature.js";
import { formatTime, parseTime } from "../time.js";
import { checkContent } from "./check.js";

import { type FieldProblem, readAttachments, readMetadata, readReferences } from "./extras.js";
import { SEAL_FIELD, SEAL_PLACEHOLDER, sealMessage } from "./seal.js";
import {
  ASP_VERSION,
  LIMITS,
  type MeshMessage,
  type MessageExtras,
  type MessageType,
  PRIORITIES,
} from "./types.js";

/** A message before signing. The outbox stores it unsigned, because it may have to be signed again. */
export interface UnsignedMessage {
  readonly message_id: string;
  readonly swarm_id: string;
  readonly recipient: string;
  readonly type: MessageType;
  readonly content: string;
  readonly extras?: MessageExtras;
}

/** Rejects what peers would refuse. @throws MailroomError naming every invalid field */
export function checkUnsignedMessage(draft: UnsignedMessage): void {
  const { content, extras = {} } = draft;
  const problems: FieldProblem[] = [];
  const add = (path: string, message: string | undefined): void => {
    if (message !== undefined) problems.push({ path, message });
  };
  add("content", checkContent(content));
  for (const name of ["in_reply_to", "thread_id"] as const) {
    add(name, checkText(extras[name], isUuid, "must be a UUID"));
  }
  add(
    "priority",
    checkText(
      extras.priority,
      (word) => PRIORITIES.some((known) => known === word),
      `must be one of ${PRIORITIES.join(", ")}`,
    ),
  );
  add(
    "expires_at",
    checkText(extras.expires_at, (time) => parseTime(time) !== undefined, "must be an ISO 8601 time"),
  );
  readReferences(extras.references, "sending", problems);
  readAttachments(extras.attachments, problems);
  const { metadata } = extras;
  // Reserves space for the seal.
  readMetadata(isRecord(metadata) ? { ...metadata, [SEAL_FIELD]: SEAL_PLACEHOLDER } : metadata, problems);
  if (problems.length === 0 && sizeOf(draft) > LIMITS.bodyBytes) {
    add("", `exceeds ${LIMITS.bodyBytes} bytes including all extras`);
  }
  if (problems.length === 0) return;
  const list = problems.map(({ path, message }) => `${path} ${message}`.trim()).join("; ");
  throw new MailroomError("invalid_message", `the message cannot be sent: ${list}`, {
    details: { problems },
  });
}

/** Extras may come from untyped callers. */
function checkText(value: unknown, holds: (text: string) => boolean, otherwise: string): string | undefined {
  return value === undefined || (typeof value === "string" && holds(value)) ? undefined : otherwise;
}

/** Upper bound for the sender and the fields that signing adds. */
const ENVELOPE_BYTES = 4_096;

/** Upper bound of the size on the wire. */
function sizeOf({ content, extras }: UnsignedMessage): number {
  return ENVELOPE_BYTES + Buffer.byteLength(JSON.stringify({ content, extras }));
}

export interface Signer {
  readonly agentId: string;
  readonly endpoint: string;
  readonly pair: KeyPair;
  /** Whether to also sign the fields that the protocol leaves unsigned. */
  readonly seals?: boolean;
}

/** Fields in the order of the reference. The same message, time and key always give the same bytes. */
export function signMessage(draft: UnsignedMessage, signer: Signer, at: number): MeshMessage {
  const { agentId, endpoint, pair, seals = false } = signer;
  const { message_id, swarm_id, recipient, type, content, extras = {} } = draft;
  const timestamp = formatTime(at);
  const signature = signFields({ message_id, timestamp, swarm_id, recipient, type, content }, pair);
  const { in_reply_to, thread_id, priority, expires_at, attachments, references, metadata } = extras;
  const message: MeshMessage = {
    protocol_version: ASP_VERSION,
    message_id,
    timestamp,
    sender: { agent_id: agentId, endpoint },
    recipient,
    swarm_id,
    type,
    content,
    signature,
    ...(in_reply_to !== undefined && { in_reply_to }),
    ...(thread_id !== undefined && { thread_id }),
    ...(priority !== undefined && priority !== "normal" && { priority }),
    ...(expires_at !== undefined && { expires_at }),
    ...(attachments !== undefined && attachments.length > 0 && { attachments }),
    ...(references !== undefined && references.length > 0 && { references }),
    ...(metadata !== undefined && { metadata }),
  };
  return seals ? sealMessage(message, pair) : message;
}

/** What a stored message carries beside its content, to be shown: the fields that `send` calls extras. */
import type { QueuedMessage } from "../queue.js";
import { isRecord } from "./extras.js";
import { SEAL_FIELD } from "./seal.js";

const FIELDS = ["priority", "expires_at", "attachments", "references", "metadata"] as const;

export type Carried = Readonly<Record<string, unknown>>;

type Stored = Pick<QueuedMessage, "envelope" | "content">;

export function carriedBy({ envelope, content }: Stored): Carried {
  // Of a note of our own, and of what was imported, there is nothing but the content.
  if (envelope === content) return {};
  const message = parsed(envelope);
  const { [SEAL_FIELD]: _, ...metadata } = isRecord(message.metadata) ? message.metadata : {};
  const shown: Carried = { ...message, metadata: Object.keys(metadata).length > 0 ? metadata : undefined };
  return Object.fromEntries(FIELDS.filter((name) => shown[name] != null).map((name) => [name, shown[name]]));
}

/** The same without the contents of inline attachments, of which there may be very many in a list. */
export function carriedBriefly(message: Stored): Carried {
  const carried = carriedBy(message);
  const { attachments } = carried;
  return Array.isArray(attachments) ? { ...carried, attachments: attachments.map(brief) } : carried;
}

function brief(attachment: unknown): unknown {
  if (!isRecord(attachment) || attachment.type !== "inline") return attachment;
  const { content, ...rest } = attachment;
  return { ...rest, ...(typeof content === "string" && { bytes: Buffer.byteLength(content, "base64") }) };
}

function parsed(envelope: string): Carried {
  const value: unknown = JSON.parse(envelope);
  return isRecord(value) ? value : {};
}

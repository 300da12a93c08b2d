/** The extras of a stored message, for display. */

import { isRecord } from "../../base/index.js";
import type { QueuedMessage } from "../messages.js";
import { SEAL_FIELD } from "./seal.js";

const FIELDS = ["priority", "expires_at", "attachments", "references", "metadata"] as const;

export type ExtrasView = Readonly<Record<string, unknown>>;

type Stored = Pick<QueuedMessage, "envelope" | "content">;

export function viewExtras({ envelope, content }: Stored): ExtrasView {
  // Local events and imported messages consist of their content only.
  if (envelope === content) return {};
  const message = parsed(envelope);
  const { [SEAL_FIELD]: _, ...metadata } = isRecord(message.metadata) ? message.metadata : {};
  const shown: ExtrasView = { ...message, metadata: Object.keys(metadata).length > 0 ? metadata : undefined };
  return Object.fromEntries(FIELDS.filter((name) => shown[name] != null).map((name) => [name, shown[name]]));
}

/** Omits the contents of inline attachments, for lists. */
export function viewExtrasBriefly(message: Stored): ExtrasView {
  const carried = viewExtras(message);
  const { attachments } = carried;
  return Array.isArray(attachments) ? { ...carried, attachments: attachments.map(brief) } : carried;
}

function brief(attachment: unknown): unknown {
  if (!isRecord(attachment) || attachment.type !== "inline") return attachment;
  const { content, ...rest } = attachment;
  return { ...rest, ...(typeof content === "string" && { bytes: Buffer.byteLength(content, "base64") }) };
}

function parsed(envelope: string): ExtrasView {
  const value: unknown = JSON.parse(envelope);
  return isRecord(value) ? value : {};
}

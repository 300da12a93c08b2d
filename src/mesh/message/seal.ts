/**
 * The seal is a second signature over the fields that the protocol leaves unsigned: sender, thread, priority, expiry,
 * attachments, references, metadata. It is stored in the metadata, where other implementations ignore it.
 */

import { isRecord } from "../../base/index.js";
import { decodeBase64 } from "../identity/base64.js";
import { type KeyPair, type PublicKey, verifyAside } from "../identity/keys.js";
import type { MeshMessage } from "./types.js";

export const SEAL_FIELD = "mailroom_seal";
/** Has the length of every seal, 64 bytes in base64, to measure a message before it is signed. */
export const SEAL_PLACEHOLDER = "x".repeat(88);

export type SealVerdict = "sealed" | "unsealed" | "broken";

/** Any later change of the message breaks the seal. */
export function sealMessage(message: MeshMessage, pair: KeyPair): MeshMessage {
  const seal = pair.sign(sealedBytes(message)).toString("base64");
  return { ...message, metadata: { ...message.metadata, [SEAL_FIELD]: seal } };
}

export async function checkSeal(message: MeshMessage, publicKey: PublicKey): Promise<SealVerdict> {
  const seal = message.metadata?.[SEAL_FIELD];
  if (seal === undefined) return "unsealed";
  const bytes = typeof seal === "string" ? decodeBase64(seal) : undefined;
  if (bytes === undefined) return "broken";
  return (await verifyAside(publicKey, sealedBytes(message), bytes)) ? "sealed" : "broken";
}

/**
 * The message's signature covers the other six fields. The prefix separates seals from other signatures of the same
 * key.
 */
function sealedBytes(message: MeshMessage): Buffer {
  const { sender, in_reply_to, thread_id, priority, expires_at, attachments, references, metadata } = message;
  const fields = [
    message.signature,
    message.protocol_version,
    sender.agent_id,
    sender.endpoint,
    in_reply_to?.toLowerCase() ?? null,
    thread_id?.toLowerCase() ?? null,
    priority ?? "normal",
    expires_at ?? null,
    (attachments ?? []).map(({ type, mime_type, content }) => [type, mime_type, content]),
    (references ?? []).map(({ type, repo, number, sha, url, action }) => [
      type,
      repo,
      number,
      sha,
      url,
      action,
    ]),
    inOrder(metadata ?? {}, SEAL_FIELD),
  ];
  return Buffer.from(`mailroom-seal-1\n${JSON.stringify(fields)}`, "utf8");
}

/** Sorts keys, because JSON objects have no order. */
function inOrder(value: unknown, without?: string): unknown {
  if (Array.isArray(value)) return value.map((item) => inOrder(item));
  if (!isRecord(value)) return value;
  const keys = Object.keys(value).filter((key) => key !== without);
  return Object.fromEntries(keys.sort().map((key) => [key, inOrder(value[key])]));
}

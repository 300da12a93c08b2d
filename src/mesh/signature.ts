/** ASP: Signature. The signed text, signing and verification. */
import { hash } from "node:crypto";
import { decodeBase64 } from "./identity/base64.js";
import { type KeyPair, type PublicKey, verifyAside, verifyWith } from "./identity/keys.js";

/** The six signed fields. All other fields of a message are hints. */
export interface SignedFields {
  readonly message_id: string;
  readonly timestamp: string;
  readonly swarm_id: string;
  readonly recipient: string;
  readonly type: string;
  readonly content: string;
}

/** Ids are signed in lower case, however they are spelled on the wire. Content is signed unchanged. */
export function canonicalText(fields: SignedFields): string {
  const { message_id, timestamp, swarm_id, recipient, type, content } = fields;
  return `${message_id.toLowerCase()}${timestamp}${swarm_id.toLowerCase()}${recipient}${type}${content}`;
}

/** Plain Ed25519 over this digest, not Ed25519ph. */
export function digestOf(fields: SignedFields): Buffer {
  return hash("sha256", canonicalText(fields), "buffer");
}

/** The caller must have checked that the content has no lone surrogates, which cannot be encoded. */
export function signFields(fields: SignedFields, pair: KeyPair): string {
  return pair.sign(digestOf(fields)).toString("base64");
}

export type SignatureVerdict =
  | "valid"
  /** Not the canonical base64 of 64 bytes. */
  | "malformed_signature"
  | "wrong_signature";

/** Asynchronous variant for high rates. */
export async function isSignedBy(
  message: SignedFields & { readonly signature: string },
  key: PublicKey,
): Promise<boolean> {
  const bytes = decodeBase64(message.signature);
  return bytes?.length === 64 && (await verifyAside(key, digestOf(message), bytes));
}

export function verifySignature(
  fields: SignedFields,
  signature: string,
  publicKey: PublicKey,
): SignatureVerdict {
  const bytes = decodeBase64(signature);
  if (bytes?.length !== 64) return "malformed_signature";
  return verifyWith(publicKey, digestOf(fields), bytes) ? "valid" : "wrong_signature";
}

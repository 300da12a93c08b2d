/** ASP: Signature. What is signed, and why a signature does not hold. */
import { hash } from "node:crypto";
import { decodeBase64 } from "./identity/base64.js";
import { type KeyPair, type PublicKey, verifyAside, verifyWith } from "./identity/keys.js";

/** The six signed fields. Everything else of a message is a hint. */
export interface SignedFields {
  readonly message_id: string;
  readonly timestamp: string;
  readonly swarm_id: string;
  readonly recipient: string;
  readonly type: string;
  readonly content: string;
}

/** Ids are signed in lower case, whatever their spelling on the wire. Content is taken as it is. */
export function canonicalText(fields: SignedFields): string {
  const { message_id, timestamp, swarm_id, recipient, type, content } = fields;
  return `${message_id.toLowerCase()}${timestamp}${swarm_id.toLowerCase()}${recipient}${type}${content}`;
}

/** Plain Ed25519 over this digest, not Ed25519ph. */
export function digestOf(fields: SignedFields): Buffer {
  return hash("sha256", canonicalText(fields), "buffer");
}

/** The caller has checked that the content is well-formed: a lone surrogate has no bytes to be signed. */
export function signFields(fields: SignedFields, pair: KeyPair): string {
  return pair.sign(digestOf(fields)).toString("base64");
}

export type SignatureVerdict =
  | "valid"
  /** Not the one base64 spelling of 64 bytes. */
  | "malformed_signature"
  | "wrong_signature";

/** For what comes in by the thousand. */
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

/**
 * The optional signature of a wrapper (decisions E9): Ed25519 over the canonical form of the wrapper without
 * `metadata.signature` and `auth_token`. It travels in `metadata`, where other implementations do not look.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { LRUCache } from "lru-cache";
import type { MAILInterswarmMessage } from "../../mail/message.js";
import { canonicalJson } from "./canonical.js";

const PREFIX = "ed25519:";
/** What precedes the 32 bytes of an Ed25519 key in its DER form (RFC 8410). */
const SPKI_HEADER = Buffer.from("302a300506032b6570032100", "hex");

export interface SigningKey {
  /** As `GET /` shows it and peers pin it: `ed25519:` and the raw key in base64. */
  readonly publicKey: string;
  sign(wrapper: MAILInterswarmMessage): MAILInterswarmMessage;
}

export type SignatureVerdict =
  | { readonly ok: true; readonly signed: boolean }
  | { readonly ok: false; readonly reason: "missing" | "no_key" | "malformed" | "invalid" };

/** A new private key as PEM text; to be kept in a file of mode 0600 (decisions C7). */
export function generateSigningKey(): string {
  const { privateKey } = generateKeyPairSync("ed25519");
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** @throws Error when the text is not an Ed25519 private key */
export function readSigningKey(pem: string): SigningKey {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== "ed25519") throw new Error("the federation key is not an Ed25519 key");
  return {
    publicKey: writePublicKey(createPublicKey(key)),
    sign(wrapper) {
      const value = sign(null, signedBytes(wrapper), key).toString("base64");
      return { ...wrapper, metadata: { ...wrapper.metadata, signature: `${PREFIX}${value}` } };
    },
  };
}

/**
 * `pinned` is the key that was seen at registration. A signature that cannot be checked for want of a key counts for
 * nothing; one that is wrong is refused whatever the policy.
 */
export function checkSignature(
  wrapper: MAILInterswarmMessage,
  pinned: string | null,
  policy: "optional" | "required",
): SignatureVerdict {
  const signature = wrapper.metadata?.signature;
  if (signature === undefined || signature === null) {
    return policy === "required" ? { ok: false, reason: "missing" } : { ok: true, signed: false };
  }
  if (pinned === null) {
    return policy === "required" ? { ok: false, reason: "no_key" } : { ok: true, signed: false };
  }
  const key = readPublicKey(pinned);
  if (key === undefined) return { ok: false, reason: "no_key" };
  if (typeof signature !== "string" || !signature.startsWith(PREFIX))
    return { ok: false, reason: "malformed" };
  const value = Buffer.from(signature.slice(PREFIX.length), "base64");
  return verify(null, signedBytes(wrapper), key, value)
    ? { ok: true, signed: true }
    : { ok: false, reason: "invalid" };
}

/** Whether a text is a key as `GET /` shows it. */
export function isPublicKey(text: string): boolean {
  return readPublicKey(text) !== undefined;
}

function signedBytes({ auth_token: _, metadata, ...rest }: MAILInterswarmMessage): Buffer {
  const { signature: __, ...unsigned } = metadata ?? {};
  return Buffer.from(canonicalJson({ ...rest, metadata: unsigned }), "utf8");
}

function writePublicKey(key: KeyObject): string {
  const der = key.export({ type: "spki", format: "der" });
  return `${PREFIX}${der.subarray(SPKI_HEADER.length).toString("base64")}`;
}

/** Reading a key takes longer than checking a signature with it, and peers keep their keys. */
const readKeys = new LRUCache<string, KeyObject>({ max: 1_000 });

function readPublicKey(text: string): KeyObject | undefined {
  const known = readKeys.get(text);
  if (known !== undefined) return known;
  if (!text.startsWith(PREFIX)) return undefined;
  const raw = Buffer.from(text.slice(PREFIX.length), "base64");
  if (raw.length !== 32) return undefined;
  const key = createPublicKey({ key: Buffer.concat([SPKI_HEADER, raw]), format: "der", type: "spki" });
  readKeys.set(text, key);
  return key;
}

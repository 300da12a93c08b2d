/**
 * The optional signature of a wrapper (decision E9): Ed25519 over the canonical JSON of the wrapper without
 * `metadata.signature` and `auth_token`. It is sent in `metadata`, which other implementations ignore.
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
import { canonicalJson, isRecord } from "../../base/index.js";
import type { MAILInterswarmMessage } from "../../mail/index.js";

const PREFIX = "ed25519:";
/** DER prefix of a 32-byte Ed25519 key (RFC 8410). */
const SPKI_HEADER = Buffer.from("302a300506032b6570032100", "hex");

export interface SigningKey {
  /** As in `GET /`: `ed25519:` and the raw key in base64. Peers pin it. */
  readonly publicKey: string;
  sign(wrapper: MAILInterswarmMessage): MAILInterswarmMessage;
}

export type SignatureCheck =
  | { readonly ok: true; readonly signed: boolean }
  | { readonly ok: false; readonly reason: "missing" | "no_key" | "malformed" | "invalid" };

/** Returns a new private key as PEM; store it in a file with mode 0600 (decision C7). */
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
 * `pinned` is the key seen at registration. Without it, a signature counts as absent. An invalid signature is
 * rejected under every policy.
 */
export function checkSignature(
  wrapper: SignedWrapper,
  pinned: string | null,
  policy: "optional" | "required",
): SignatureCheck {
  const { signature } = recordOf(wrapper.metadata);
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

/** Returns whether the text is a public key in the form of `GET /`. */
export function isPublicKey(text: string): boolean {
  return readPublicKey(text) !== undefined;
}

/** What a signature is about: every field that was sent. */
export type SignedWrapper = Readonly<Record<string, unknown>>;

function signedBytes({ auth_token: _, metadata, ...rest }: SignedWrapper): Buffer {
  const { signature: __, ...unsigned } = recordOf(metadata);
  return Buffer.from(canonicalJson({ ...rest, metadata: unsigned }), "utf8");
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function writePublicKey(key: KeyObject): string {
  const der = key.export({ type: "spki", format: "der" });
  return `${PREFIX}${der.subarray(SPKI_HEADER.length).toString("base64")}`;
}

/** Parsing a key takes longer than verifying a signature, and peers rarely change keys. */
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

/** Ed25519 keys in the raw form of the mesh: 32 bytes, base64 on the wire and binary in the key file. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { decodeBase64 } from "./base64.js";

const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

export interface PublicKey {
  /** Canonical base64, 44 characters. */
  readonly text: string;
  readonly key: KeyObject;
}

export type ParsedKey = { readonly key: PublicKey } | { readonly reason: string };

/** Accepts the raw form and the SPKI form of the protocol's examples (REF-36); returns the raw form. */
export function parsePublicKey(text: string): ParsedKey {
  const bytes = decodeBase64(text);
  if (bytes === undefined) return { reason: "is not base64 with padding" };
  const raw = bytes.length === 44 && bytes.subarray(0, 12).equals(SPKI_PREFIX) ? bytes.subarray(12) : bytes;
  if (raw.length !== 32) return { reason: `must be an Ed25519 key of 32 bytes, not ${bytes.length}` };
  if (isWeakPoint(raw)) return { reason: "is a weak point for which forged signatures are valid" };
  const key = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, raw]), format: "der", type: "spki" });
  return { key: { text: raw.toString("base64"), key } };
}

/** The agent's own key pair. The private key is not accessible. */
export interface KeyPair {
  readonly publicKey: PublicKey;
  sign(data: Uint8Array): Buffer;
}

/** @throws Error for a seed that is not 32 bytes long */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
  if (seed.length !== 32) throw new Error(`a private key must be 32 bytes, not ${seed.length}`);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
  const spki = createPublicKey(key).export({ format: "der", type: "spki" });
  const parsed = parsePublicKey(spki.toString("base64"));
  if ("reason" in parsed) throw new Error(`unusable private key: its public key ${parsed.reason}`);
  return { publicKey: parsed.key, sign: (data) => sign(null, data, key) };
}

/** Verifies on another thread, so that other messages are parsed and stored meanwhile. */
export function verifyAside({ key }: PublicKey, data: Uint8Array, signature: Uint8Array): Promise<boolean> {
  return new Promise((resolve, reject) => {
    if (signature.length !== 64) resolve(false);
    else
      verify(null, data, key, signature, (error, holds) => (error === null ? resolve(holds) : reject(error)));
  });
}

export function verifyWith({ key }: PublicKey, data: Uint8Array, signature: Uint8Array): boolean {
  return signature.length === 64 && verify(null, data, key, signature);
}

/** The y coordinates of all points of order 1, 2, 4 and 8 in canonical encoding, without the sign bit. */
const SMALL_ORDER = new Set([
  // order 4
  "0000000000000000000000000000000000000000000000000000000000000000",
  // order 1
  "0100000000000000000000000000000000000000000000000000000000000000",
  // order 8
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  // order 2: y = p - 1
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

const FIELD_PRIME = 2n ** 255n - 19n;

/**
 * Rejects points of small order, for which one signature can match many messages, and encodings of a coordinate
 * beyond the field's prime, which are alternative encodings of another point.
 */
function isWeakPoint(raw: Uint8Array): boolean {
  const y = Buffer.from(raw);
  y[31] = (y[31] ?? 0) & 0x7f;
  return SMALL_ORDER.has(y.toString("hex")) || BigInt(`0x${y.reverse().toString("hex")}`) >= FIELD_PRIME;
}

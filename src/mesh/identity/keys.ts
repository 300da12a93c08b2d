/** Ed25519 keys as the mesh writes them: the raw 32 bytes, in base64 on the wire and binary in the key file. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { decodeBase64 } from "./base64.js";
import { isWeakPoint } from "./weak-points.js";

const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

export interface PublicKey {
  /** The one spelling: 44 characters of base64. */
  readonly text: string;
  readonly key: KeyObject;
}

export type ParsedKey = { readonly key: PublicKey } | { readonly reason: string };

/** Takes the raw form and, because the seed's examples show it, the SPKI form; both become the raw one. */
export function parsePublicKey(text: string): ParsedKey {
  const bytes = decodeBase64(text);
  if (bytes === undefined) return { reason: "is not base64 with padding" };
  const raw = bytes.length === 44 && bytes.subarray(0, 12).equals(SPKI_PREFIX) ? bytes.subarray(12) : bytes;
  if (raw.length !== 32) return { reason: `must be an Ed25519 key of 32 bytes, not ${bytes.length}` };
  if (isWeakPoint(raw)) return { reason: "is a point that makes forged signatures valid" };
  const key = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, raw]), format: "der", type: "spki" });
  return { key: { text: raw.toString("base64"), key } };
}

/** An agent's own key pair. The private half never leaves it. */
export interface KeyPair {
  readonly publicKey: PublicKey;
  sign(data: Uint8Array): Buffer;
}

/** @throws Error when the seed has not 32 bytes. */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
  if (seed.length !== 32) throw new Error(`a private key is 32 bytes, not ${seed.length}`);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
  const spki = createPublicKey(key).export({ format: "der", type: "spki" });
  const parsed = parsePublicKey(spki.toString("base64"));
  if ("reason" in parsed) throw new Error(`the private key is unusable: its public key ${parsed.reason}`);
  return { publicKey: parsed.key, sign: (data) => sign(null, data, key) };
}

/** The same on another thread: while a signature is verified, other messages are parsed and stored. */
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

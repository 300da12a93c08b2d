import { hash, timingSafeEqual } from "node:crypto";
import { canonicalJson } from "../json.js";

/** SHA-256 of a JSON value, in hexadecimal: equal data have equal digests, whatever the order of their keys. */
export function digest(value: unknown): string {
  return hash("sha256", canonicalJson(value), "hex");
}

/** Compares in a time that tells nothing about the secret, not even its length. */
export function secretsMatch(given: string | undefined, secret: string): boolean {
  if (given === undefined) return false;
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", secret, "buffer"));
}

/** The beginning of a public key's SHA-256, in groups of four: people compare it with what the other side reads out. */
export function keyFingerprint(publicKey: string): string {
  const digest = hash("sha256", Buffer.from(publicKey, "base64"), "hex");
  return digest.slice(0, 16).match(/.{4}/g)?.join(" ") ?? "";
}

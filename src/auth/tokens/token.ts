/**
 * The text of a token: `mr_<role>_<id><secret>`. People and secret scanners recognize the prefix, the id finds its row,
 * the secret is verified.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { ROLES, type Role } from "../roles.js";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ID_LENGTH = 10;
/** 32 of 62 characters are 190 bits: too many to guess, so that one round of SHA-256 is enough to store it. */
const SECRET_LENGTH = 32;

const FORM = new RegExp(
  `^mr_(?:${ROLES.join("|")})_([0-9A-Za-z]{${ID_LENGTH}})[0-9A-Za-z]{${SECRET_LENGTH}}$`,
);

export interface NewToken {
  readonly token: string;
  readonly tokenId: string;
}

export function makeToken(role: Role): NewToken {
  const tokenId = randomText(ID_LENGTH);
  return { token: `mr_${role}_${tokenId}${randomText(SECRET_LENGTH)}`, tokenId };
}

/** `undefined` for what is not a token of this server. */
export function tokenIdOf(token: string): string | undefined {
  return FORM.exec(token)?.[1];
}

/** Whether the text looks like a Mailroom token, complete or not. */
export function looksLikeToken(bearer: string): boolean {
  return bearer.startsWith("mr_");
}

export function hashToken(token: string): Uint8Array {
  return hash("sha256", token, "buffer");
}

/** Takes a time that does not depend on where the two differ. */
export function sameHash(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}

function randomText(length: number): string {
  // Bytes from 248 on would make the first characters of the alphabet more likely.
  const limit = 256 - (256 % ALPHABET.length);
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < limit && text.length < length) text += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return text;
}

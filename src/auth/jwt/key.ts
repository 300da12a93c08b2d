import { createPublicKey } from "node:crypto";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTVerifyGetKey,
  type KeyObject,
} from "jose";
import { z } from "zod";
import { MailroomError } from "../../base/index.js";
import { fetchText } from "../fetch-text.js";
import { reasonOf } from "../reason.js";
import { type JwtAlgorithm, PUBLIC_ALGORITHMS, SECRET_ALGORITHMS } from "./algorithms.js";

/** The key that signatures are verified with. */
export type JwtKey =
  /** The issuer publishes its keys; they are fetched when needed and cached for ten minutes. */
  | { readonly kind: "jwks"; readonly url: string }
  /** A public key or certificate in PEM, or a JWK or JWK set as JSON. */
  | { readonly kind: "public"; readonly text: string }
  /** Shared with the issuer (HS256, HS384, HS512). */
  | { readonly kind: "secret"; readonly secret: string };

export interface VerifyingKey {
  readonly key: JWTVerifyGetKey;
  /** The algorithms that fit this kind of key. */
  readonly algorithms: readonly JwtAlgorithm[];
}

/** RFC 7518, 3.2: a key at least as long as the hash. */
const SHORTEST_SECRET = 32;
const LARGEST_JWKS = 1024 * 1024;

const publicJwk = z.looseObject({ kty: z.enum(["RSA", "EC", "OKP"]) });
const jwkSet = z.object({ keys: z.array(publicJwk).min(1) });

/** @throws MailroomError `bad_auth_settings` when the key cannot be used; the message does not contain the key */
export function verifyingKey(source: JwtKey, timeout: number): VerifyingKey {
  switch (source.kind) {
    case "jwks":
      return { key: remoteKeys(source.url, timeout), algorithms: PUBLIC_ALGORITHMS };
    case "public":
      return { key: publicKey(source.text.trim()), algorithms: PUBLIC_ALGORITHMS };
    case "secret": {
      const secret = new TextEncoder().encode(source.secret);
      if (secret.byteLength < SHORTEST_SECRET) {
        throw unusable(`the shared secret has fewer than ${SHORTEST_SECRET} bytes: use a longer one`);
      }
      return { key: async () => secret, algorithms: SECRET_ALGORITHMS };
    }
    default:
      return source satisfies never;
  }
}

function remoteKeys(url: string, timeout: number): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(url), {
    timeoutDuration: timeout,
    [customFetch]: async (address, { method, headers }) => {
      const answer = await fetchText(address, { method, headers }, { timeout, size: LARGEST_JWKS });
      return new Response(answer.text, { status: answer.status });
    },
  });
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (error) {
      // These two are the token's fault: it names an unknown key, or none where there are several.
      if (error instanceof errors.JWKSNoMatchingKey) throw error;
      if (error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      throw new MailroomError(
        "keys_unavailable",
        `the issuer's keys could not be fetched: ${reasonOf(error)}`,
      );
    }
  };
}

function publicKey(text: string): JWTVerifyGetKey {
  if (!text.startsWith("{")) {
    const key = importKey(() => createPublicKey(text));
    return async () => key;
  }
  const parsed: unknown = importKey(() => JSON.parse(text));
  const set = jwkSet.safeParse(parsed);
  if (set.success) return createLocalJWKSet(set.data);
  const single = publicJwk.safeParse(parsed);
  if (!single.success) throw unusable("the key is JSON but neither a public JWK nor a set of them");
  const key = importKey(() => createPublicKey({ key: single.data, format: "jwk" }));
  return async () => key;
}

function importKey<Key = KeyObject>(read: () => Key): Key {
  try {
    return read();
  } catch {
    // The reason is left out: a parser's message may quote the key.
    throw unusable("the key is not a public key in PEM, a certificate in PEM, a JWK or a JWK set");
  }
}

function unusable(problem: string): MailroomError {
  return new MailroomError("bad_auth_settings", `JWT: ${problem}`);
}

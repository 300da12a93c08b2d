/**
 * Sign-ins to the console. The server keeps none: a session is the caller's own bearer, sealed into a cookie, and it is
 * worth nothing without the proof that only the page has. Cookies are sent to every port of a host; the proof is not.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Clock, isRecord, MailroomError } from "../../base/index.js";

export interface Session {
  readonly bearer: string;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

export interface SealedSession extends Session {
  /** The cookie's value. */
  readonly sealed: string;
  readonly proof: string;
}

const CIPHER = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;
const PROOF_BYTES = 32;
/** Browsers drop cookies of more than 4 kB. */
const LONGEST_BEARER = 2_600;
const PURPOSE = Buffer.from("mailroom console session 1");

export class Sessions {
  readonly #key: () => Uint8Array;
  readonly #clock: Pick<Clock, "now">;
  readonly #lifetime: number;

  /** @param key called on first use: 32 bytes */
  constructor(parts: { key: () => Uint8Array; clock: Pick<Clock, "now">; lifetime: number }) {
    this.#key = parts.key;
    this.#clock = parts.clock;
    this.#lifetime = parts.lifetime;
  }

  /** @throws MailroomError `bad_input` for a bearer that does not fit into a cookie */
  seal(bearer: string): SealedSession {
    if (Buffer.byteLength(bearer) > LONGEST_BEARER) {
      throw new MailroomError(
        "bad_input",
        `the token is longer than ${LONGEST_BEARER} bytes, which does not fit into a browser's cookie: use a shorter one`,
      );
    }
    const proof = randomBytes(PROOF_BYTES).toString("base64url");
    const expires = this.#clock.now() + this.#lifetime;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key(), iv).setAAD(PURPOSE);
    const text = JSON.stringify({ bearer, expires, proof: digest(proof).toString("base64url") });
    const sealed = Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return { bearer, expires, proof, sealed: sealed.toString("base64url") };
  }

  /** Returns nothing if the cookie is not ours, has expired, or belongs to another proof. */
  open(sealed: string, proof: string): Session | undefined {
    const { bearer, expires, proof: expected } = this.#unseal(sealed);
    if (typeof bearer !== "string" || typeof expires !== "number" || typeof expected !== "string")
      return undefined;
    const same = timingSafeEqual(digest(proof), fixed(Buffer.from(expected, "base64url")));
    return same && expires > this.#clock.now() ? { bearer, expires } : undefined;
  }

  #unseal(sealed: string): Readonly<Record<string, unknown>> {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length <= IV_BYTES + TAG_BYTES) return {};
    const decipher = createDecipheriv(CIPHER, this.#key(), bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    })
      .setAAD(PURPOSE)
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
      const parsed: unknown = JSON.parse(text.toString("utf8"));
      return isRecord(parsed) ? parsed : {};
    } catch {
      // Sealed with another key, or changed.
      return {};
    }
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Of the length that a comparison in constant time needs. */
function fixed(bytes: Buffer): Buffer {
  return bytes.length === 32 ? bytes : Buffer.alloc(32);
}

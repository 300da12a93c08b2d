/**
 * Places in the feed. A place has two positions, because the feed sends tasks less often than entries: everything up to
 * `entries` was sent of the watched task, and everything up to `tasks` of all tasks.
 *
 * Positions tell how much everyone writes. Admins get them as numbers, users as one block of AES-128.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { MailroomError } from "../../base/index.js";
import type { Caller } from "../../extension/index.js";

export interface FeedPlace {
  readonly entries: number;
  readonly tasks: number;
}

export type CursorForm = "plain" | "sealed";

const CIPHER = "aes-128-ecb";
const KEY_BYTES = 16;
/** 16 bytes in base64url. */
const SEALED = /^[\w-]{22}$/;
const PLAIN = /^(\d{1,14})(?:\.(\d{1,14}))?$/;

export class Cursors {
  readonly #secret: () => Uint8Array;
  #key: Uint8Array | undefined;

  /** @param secret called on first use */
  constructor(secret: () => Uint8Array) {
    this.#secret = secret;
  }

  encode(caller: Caller, place: FeedPlace): string {
    return this.write(formFor(caller), place);
  }

  write(form: CursorForm, { entries, tasks }: FeedPlace): string {
    if (form === "plain") return entries === tasks ? `${entries}` : `${entries}.${tasks}`;
    const block = Buffer.alloc(16);
    block.writeUIntBE(entries, 0, 6);
    block.writeUIntBE(tasks, 6, 6);
    const cipher = createCipheriv(CIPHER, this.#bytes, null).setAutoPadding(false);
    return cipher.update(block).toString("base64url");
  }

  /**
   * Returns nothing for a cursor of another data directory.
   * @throws MailroomError `bad_input` for text that no server has given
   */
  decode(caller: Caller, text: string): FeedPlace | undefined {
    if (formFor(caller) === "plain") {
      const [, entries, tasks = entries] = PLAIN.exec(text) ?? [];
      if (entries === undefined) throw badCursor(text);
      return { entries: Number(entries), tasks: Number(tasks) };
    }
    if (!SEALED.test(text)) throw badCursor(text);
    const decipher = createDecipheriv(CIPHER, this.#bytes, null).setAutoPadding(false);
    const block = decipher.update(Buffer.from(text, "base64url"));
    // What another key has sealed has other bytes here.
    if (block.readUInt32BE(12) !== 0) return undefined;
    return { entries: block.readUIntBE(0, 6), tasks: block.readUIntBE(6, 6) };
  }

  get #bytes(): Uint8Array {
    this.#key ??= this.#secret().subarray(0, KEY_BYTES);
    return this.#key;
  }
}

export function formFor({ principal }: Caller): CursorForm {
  return principal.role === "admin" ? "plain" : "sealed";
}

function badCursor(text: string): MailroomError {
  return new MailroomError("bad_input", `'${text.slice(0, 40)}' is not a cursor of this feed`);
}

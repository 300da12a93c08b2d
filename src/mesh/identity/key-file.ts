/** `agent.key`: 32 raw bytes, readable by its owner only from its creation on (decision C7). */

import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { MailroomError } from "../../base/index.js";
import { createFile, isExisting, replaceFile } from "../../base/node.js";
import { type KeyPair, keyPairFromSeed } from "./keys.js";

/** @throws MailroomError when the file exists: it is never overwritten, because a lost key is a lost identity */
export function createKeyFile(path: string): KeyPair {
  const seed = randomBytes(32);
  try {
    createFile(path, seed);
  } catch (cause) {
    if (isExisting(cause)) {
      throw new MailroomError("already_initialized", `${path} exists: this agent already has a key`);
    }
    throw cause;
  }
  return keyPairFromSeed(seed);
}

/** @throws MailroomError when the file is missing, malformed or readable by others */
export function readKeyFile(path: string): KeyPair {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new MailroomError("not_initialized", `cannot read ${path}: run "mailroom mesh init" first`, {
      cause,
    });
  }
  if (bytes.length !== 32) {
    throw new MailroomError("invalid_key_file", `${path} must contain exactly 32 bytes, not ${bytes.length}`);
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
    throw new MailroomError(
      "invalid_key_file",
      `${path} is readable by other users: run chmod 600, or create a new key`,
    );
  }
  return keyPairFromSeed(bytes);
}

export interface NextKey {
  readonly pair: KeyPair;
  /** Replaces the current key, which is kept beside it. */
  install(): void;
  forget(): void;
}

/** Creates a new key in a separate file. If the process dies before `install`, `nextKey` finds it. */
export function prepareNextKey(path: string): NextKey {
  const seed = randomBytes(32);
  replaceFile(nextPath(path), seed);
  return nextOf(path, seed);
}

/** Returns a key that was prepared, and neither installed nor discarded. */
export function nextKey(path: string): NextKey | undefined {
  return existsSync(nextPath(path)) ? nextOf(path, readFileSync(nextPath(path))) : undefined;
}

/** Returns the last few former keys, latest first. */
export function formerKeys(path: string, count = 3): KeyPair[] {
  const folder = dirname(path);
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(path)}.`) && name.endsWith(".old"))
    .map((name) => join(folder, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
    .slice(0, count)
    .map((file) => readFileSync(file))
    .filter((seed) => seed.length === 32)
    .map(keyPairFromSeed);
}

function nextOf(path: string, seed: Uint8Array): NextKey {
  const forget = (): void => rmSync(nextPath(path), { force: true });
  return {
    pair: keyPairFromSeed(seed),
    install: () => {
      replaceFile(`${path}.${randomUUID()}.old`, readFileSync(path));
      replaceFile(path, seed);
      forget();
    },
    forget,
  };
}

const nextPath = (path: string): string => `${path}.next`;

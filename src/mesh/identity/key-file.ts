/** `agent.key`: 32 raw bytes, readable by its owner only from the moment it exists (decisions C7). */
import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createFile, isExisting, replaceFile } from "../../files/durable.js";
import { MeshError } from "../errors.js";
import { type KeyPair, keyPairFromSeed } from "./keys.js";

/** @throws MeshError when there is one already: a lost key is a lost identity, so it is never overwritten. */
export function createKeyFile(path: string): KeyPair {
  const seed = randomBytes(32);
  try {
    createFile(path, seed);
  } catch (cause) {
    if (isExisting(cause)) {
      throw new MeshError("already_initialised", `${path} exists: this agent has a key already`);
    }
    throw cause;
  }
  return keyPairFromSeed(seed);
}

/** @throws MeshError when the file is missing, malformed or readable by others. */
export function readKeyFile(path: string): KeyPair {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new MeshError("not_initialised", `${path} cannot be read: run "mailroom mesh init" first`, {
      cause,
    });
  }
  if (bytes.length !== 32) {
    throw new MeshError("invalid_key_file", `${path} must hold exactly 32 bytes, not ${bytes.length}`);
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
    throw new MeshError("invalid_key_file", `${path} is readable by others: chmod 600 it, or make a new key`);
  }
  return keyPairFromSeed(bytes);
}

export interface NextKey {
  readonly pair: KeyPair;
  /** Puts it in the place of the key, which is kept beside it. */
  install(): void;
  forget(): void;
}

/** A new key in a file of its own: should the process die before it is installed, `nextKey` finds it. */
export function prepareNextKey(path: string): NextKey {
  const seed = randomBytes(32);
  replaceFile(nextPath(path), seed);
  return nextOf(path, seed);
}

/** A key that was prepared, and neither installed nor forgotten. */
export function nextKey(path: string): NextKey | undefined {
  return existsSync(nextPath(path)) ? nextOf(path, readFileSync(nextPath(path))) : undefined;
}

/** The last few keys that were in this place before, the latest first. */
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

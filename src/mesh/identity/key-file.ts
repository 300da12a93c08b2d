/** `agent.key`: 32 raw bytes, readable by its owner only from the moment it exists (decisions C7). */
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
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

/** A new key, and what puts it in the place of the old one, which is kept beside it. */
export function prepareKeyFile(path: string): { readonly pair: KeyPair; readonly install: () => void } {
  const seed = randomBytes(32);
  return {
    pair: keyPairFromSeed(seed),
    install: () => {
      writeFileSync(`${path}.${randomUUID()}.old`, readFileSync(path), { mode: 0o600, flag: "wx" });
      replaceFile(path, seed);
    },
  };
}

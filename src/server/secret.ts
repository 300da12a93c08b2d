/** The secret of a data directory, from which parts of the server derive their keys. Never in the database (decision C7). */
import { hkdfSync, randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { MailroomError } from "../base/index.js";
import { createFile, isExisting } from "../base/node.js";

const NAME = "secret.key";
const BYTES = 32;

/**
 * Derives keys of 32 bytes by purpose. The file is created on first use; without a directory the secret lasts as long
 * as the process.
 * @throws MailroomError `bad_config` from the returned function, when the file is damaged or readable by other users
 */
export function createSecret(directory: string | undefined): (purpose: string) => Uint8Array {
  let root: Uint8Array | undefined;
  return (purpose) => {
    root ??= directory === undefined ? randomBytes(BYTES) : readOrCreate(join(directory, NAME));
    return new Uint8Array(hkdfSync("sha256", root, "", `mailroom ${purpose}`, BYTES));
  };
}

function readOrCreate(path: string): Uint8Array {
  try {
    createFile(path, randomBytes(BYTES));
  } catch (error) {
    if (!isExisting(error)) throw error;
  }
  const bytes = readFileSync(path);
  if (bytes.length !== BYTES) {
    throw new MailroomError(
      "bad_config",
      `${path} must contain exactly ${BYTES} bytes, not ${bytes.length}: remove it to create a new one, which signs everyone out`,
    );
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
    throw new MailroomError("bad_config", `${path} is readable by other users: run chmod 600 on it`);
  }
  return bytes;
}

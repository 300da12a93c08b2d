import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { generateSigningKey, readSigningKey, type SigningKey } from "./wrapper/signature.js";

/** The key of this server, made when there is none. It never leaves its file, which only the owner can read. */
export async function openSigningKey(path: string): Promise<SigningKey> {
  try {
    return readSigningKey(await readFile(path, "utf8"));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  await mkdir(dirname(path), { recursive: true });
  const pem = generateSigningKey();
  await writeFile(path, pem, { mode: 0o600, flag: "wx" });
  // A umask can only take rights away, but a file system may not care for modes at creation.
  await chmod(path, 0o600);
  return readSigningKey(pem);
}

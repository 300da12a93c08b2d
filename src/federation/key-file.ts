import { readFile } from "node:fs/promises";
import { createFile } from "../files/durable.js";
import { generateSigningKey, readSigningKey, type SigningKey } from "./wrapper/signature.js";

/** The key of this server, made when there is none. It never leaves its file, which only the owner can read. */
export async function openSigningKey(path: string): Promise<SigningKey> {
  try {
    return readSigningKey(await readFile(path, "utf8"));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  const pem = generateSigningKey();
  createFile(path, pem);
  return readSigningKey(pem);
}

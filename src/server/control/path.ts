/** Where a running server listens for callers that can read its data directory (decision C4). */
import { createHash } from "node:crypto";
import { join } from "node:path";

/** What the operating systems allow for the path of a socket; the shortest of them is macOS with 104. */
const LONGEST_PATH = 103;

/** Nothing when the directory's path is too long for a socket. */
export function controlPath(data: string, platform: NodeJS.Platform = process.platform): string | undefined {
  if (platform === "win32") {
    const name = createHash("sha256").update(data.toLowerCase()).digest("hex").slice(0, 24);
    return `\\\\.\\pipe\\mailroom-${name}`;
  }
  const path = join(data, "control.sock");
  return Buffer.byteLength(path) <= LONGEST_PATH ? path : undefined;
}

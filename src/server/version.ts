/** What is running: read from the package itself, so that it is never out of step. */
import { readFileSync } from "node:fs";
import { PROTOCOL_VERSION } from "../mail/index.js";

export interface Versions {
  readonly mailroom: string;
  readonly protocol: string;
  readonly node: string;
}

export function versions(): Versions {
  // Two folders up, from `src/cli` as from `dist/cli`.
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const parsed: unknown = JSON.parse(text);
  const found =
    typeof parsed === "object" && parsed !== null && "version" in parsed ? parsed.version : undefined;
  return {
    mailroom: typeof found === "string" ? found : "unknown",
    protocol: PROTOCOL_VERSION,
    node: process.versions.node,
  };
}

/** Reads `GET /` of another swarm in any of its forms (REF-18). */
import { isRecord } from "../../base/index.js";
import { isPublicKey } from "../wrapper/signature.js";
import { type KnownSwarm, stringOrNull, stringsIn } from "./entry.js";

export type SelfDescription = Pick<
  KnownSwarm,
  "version" | "description" | "keywords" | "public" | "entrypoint" | "capabilities" | "publicKey"
> & {
  /** The name that the swarm announces, if any. */
  readonly name: string | null;
};

/** Longer texts are cut, because agents and users see them. */
const LONGEST_TEXT = 2_000;
const MOST_WORDS = 100;

/** Returns undefined if the answer is not a MAIL server's. */
export function readSelfDescription(body: string): SelfDescription | undefined {
  const root = parse(body);
  if (!isRecord(root)) return undefined;
  // MAIL 1.3 has an object here; 1.2 has the name, and some servers add the object as `swarm_info`.
  const info = isRecord(root.swarm) ? root.swarm : isRecord(root.swarm_info) ? root.swarm_info : {};
  const name = typeof root.swarm === "string" ? root.swarm : stringOrNull(info.name);
  const version = stringOrNull(root.protocol_version) ?? stringOrNull(root.version);
  if (name === null && version === null) return undefined;
  const publicKey = stringOrNull(root.public_key);
  return {
    name,
    version: cut(version),
    description: cut(stringOrNull(info.description)),
    keywords: words(info.keywords),
    public: info.public === true,
    entrypoint: cut(stringOrNull(info.entrypoint)),
    capabilities: words(root.capabilities),
    publicKey: publicKey !== null && isPublicKey(publicKey) ? publicKey : null,
  };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function cut(text: string | null): string | null {
  return text === null || text.length <= LONGEST_TEXT ? text : text.slice(0, LONGEST_TEXT);
}

function words(value: unknown): readonly string[] {
  return stringsIn(value)
    .slice(0, MOST_WORDS)
    .map((word) => word.slice(0, LONGEST_TEXT));
}

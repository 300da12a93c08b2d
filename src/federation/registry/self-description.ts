/** `GET /` of another swarm, in any of its forms (mail.md 14 #3). */
import { isRecord } from "../../mail/record.js";
import { isPublicKey } from "../wrapper/signature.js";
import { type SwarmEntry, textOf, textsOf } from "./entry.js";

export type SelfDescription = Pick<
  SwarmEntry,
  "version" | "description" | "keywords" | "public" | "entrypoint" | "capabilities" | "publicKey"
> & {
  /** What the swarm calls itself, where it says so. */
  readonly name: string | null;
};

/** Much more than any server says; what is longer is cut, because it is shown to agents and people. */
const LONGEST_TEXT = 2_000;
const MOST_WORDS = 100;

/** Nothing if the answer is not that of a MAIL server. */
export function readSelfDescription(body: string): SelfDescription | undefined {
  const root = parse(body);
  if (!isRecord(root)) return undefined;
  // 1.3 has an object, 1.2 the name alone, with the object beside it in some servers.
  const info = isRecord(root.swarm) ? root.swarm : isRecord(root.swarm_info) ? root.swarm_info : {};
  const name = typeof root.swarm === "string" ? root.swarm : textOf(info.name);
  const version = textOf(root.protocol_version) ?? textOf(root.version);
  if (name === null && version === null) return undefined;
  const publicKey = textOf(root.public_key);
  return {
    name,
    version: cut(version),
    description: cut(textOf(info.description)),
    keywords: words(info.keywords),
    public: info.public === true,
    entrypoint: cut(textOf(info.entrypoint)),
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
  return textsOf(value)
    .slice(0, MOST_WORDS)
    .map((word) => word.slice(0, LONGEST_TEXT));
}

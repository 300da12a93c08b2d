/** Reads `GET <url>/swarms` of another server. The answer is unverified. */
import { isRecord } from "../../base/index.js";
import type { HttpClient } from "../../net/index.js";
import { normalizeUrl, withoutSlashes } from "./base-url.js";
import { stringOrNull } from "./entry.js";

export interface FoundSwarm {
  readonly name: string;
  readonly baseUrl: string;
  readonly source: string;
}

const MOST_FOUND = 200;

/** Reads names and URLs only: tokens and metadata from an unauthenticated answer are ignored (compare REF-17). */
export function readSwarmList(body: string, source: string): readonly FoundSwarm[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return [];
  }
  const list = isRecord(parsed) ? parsed.swarms : parsed;
  if (!Array.isArray(list)) return [];
  const found: FoundSwarm[] = [];
  for (const item of list.slice(0, MOST_FOUND)) {
    if (!isRecord(item)) continue;
    // MAIL 1.3 has `swarm_name`, older versions `name`.
    const name = stringOrNull(item.swarm_name) ?? stringOrNull(item.name);
    const baseUrl = normalizeUrl(stringOrNull(item.base_url) ?? "");
    if (name !== null && baseUrl !== undefined) found.push({ name, baseUrl, source });
  }
  return found;
}

/**
 *
 * @throws NetError, or Error when the status is not 200
 */
export async function discover(
  client: HttpClient,
  url: string,
  options: { readonly timeLimit: number; readonly signal?: AbortSignal },
): Promise<readonly FoundSwarm[]> {
  const base = withoutSlashes(url).replace(/\/swarms$/, "");
  const answer = await client.request(`${base}/swarms`, {
    maxBytes: 1024 * 1024,
    headers: { accept: "application/json" },
    ...options,
  });
  if (answer.status !== 200) throw new Error(`it answered ${answer.status}`);
  return readSwarmList(answer.text(), base);
}

/** `GET <url>/swarms`: what another server knows. Everything in the answer is a claim of that server. */
import { isRecord } from "../../mail/record.js";
import type { HttpClient } from "../../net/index.js";
import { normaliseUrl, withoutSlashes } from "./base-url.js";
import { textOf } from "./entry.js";

export interface FoundSwarm {
  readonly name: string;
  readonly baseUrl: string;
  readonly source: string;
}

const MOST_FOUND = 200;

/** Names and URLs only: a token or metadata that a stranger sends along are not looked at (mail.md 7.4). */
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
    // 1.3 says `swarm_name`, older documents `name`.
    const name = textOf(item.swarm_name) ?? textOf(item.name);
    const baseUrl = normaliseUrl(textOf(item.base_url) ?? "");
    if (name !== null && baseUrl !== undefined) found.push({ name, baseUrl, source });
  }
  return found;
}

/** @throws NetError, or Error when the answer is not a list */
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

/** Calls other agents. Their responses are untrusted: bounded, parsed once and validated. */

import { isRecord, parseRetryAfter } from "../../base/index.js";

import { type HttpClient, NetError } from "../../net/index.js";
import { checkAgentId } from "../identity/agent-id.js";
import { parsePublicKey } from "../identity/keys.js";
import { type Route, routeUrl } from "../message/endpoint.js";
import { ASP_VERSION } from "../message/types.js";

export interface PeerResponse {
  readonly status: number;
  /** The JSON value of the body, if it is valid JSON. */
  readonly value: unknown;
  /** Milliseconds. */
  readonly retryAfter: number | undefined;
  /** The peer's error message, shortened to one line. */
  readonly reason: string;
}

export interface Peers {
  /** @throws NetError when there is no response */
  post(endpoint: string, route: Route, body: unknown, signal?: AbortSignal): Promise<PeerResponse>;
  /** Fetches the key that an agent's endpoint serves, or returns why it cannot. Never throws. */
  info(
    endpoint: string,
    agentId: string,
  ): Promise<{ readonly publicKey: string } | { readonly reason: string; readonly unreachable: boolean }>;
}

/** Milliseconds for the answer to a message, beside those for sending it. */
const MESSAGE_TIME = 10_000;
/** Bytes per millisecond. */
const SLOWEST = 100;
const JOIN_TIME = 30_000;

/** The largest answer of each route. Only a join is answered with a member list. */
const ANSWER_BYTES: Readonly<Record<Route, number>> = {
  join: 4 * 1024 * 1024,
  message: 64 * 1024,
  info: 64 * 1024,
  health: 64 * 1024,
};

export function createPeers(http: HttpClient, selfId: string, now: () => number): Peers {
  const headers = { "x-agent-id": selfId, "x-swarm-protocol": ASP_VERSION };
  return {
    async post(endpoint, route, body, signal) {
      const text = JSON.stringify(body);
      const answer = await http.request(routeUrl(endpoint, route), {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: text,
        timeLimit: route === "message" ? MESSAGE_TIME + text.length / SLOWEST : JOIN_TIME,
        maxBytes: ANSWER_BYTES[route],
        ...(signal !== undefined && { signal }),
      });
      const value = parseJson(answer.text());
      return {
        status: answer.status,
        value,
        retryAfter: parseRetryAfter(answer.headers["retry-after"], now()),
        reason: reasonOf(answer.status, value, answer.text()),
      };
    },

    async info(endpoint, agentId) {
      try {
        // No redirects, 5 seconds and 64 KiB are enough for a valid response.
        const answer = await http.request(routeUrl(endpoint, "info"), {
          headers,
          timeLimit: 5_000,
          maxBytes: ANSWER_BYTES.info,
        });
        const value = parseJson(answer.text());
        if (answer.status !== 200 || !isRecord(value)) {
          return { reason: `its info responds with status ${answer.status}`, unreachable: true };
        }
        if (value.agent_id !== agentId || checkAgentId(agentId) !== undefined) {
          return { reason: "its info names another agent", unreachable: false };
        }
        const parsed = parsePublicKey(typeof value.public_key === "string" ? value.public_key : "");
        if ("reason" in parsed) return { reason: `its key ${parsed.reason}`, unreachable: false };
        return { publicKey: parsed.key.text };
      } catch (error) {
        if (!(error instanceof NetError)) throw error;
        return { reason: error.message, unreachable: true };
      }
    },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Error bodies vary: an object, a string `error`, `detail` as text or list, plain text, or nothing. */
function reasonOf(status: number, value: unknown, text: string): string {
  const said = isRecord(value) ? (describe(value.error) ?? describe(value.detail)) : undefined;
  const words = said ?? (value === undefined ? text.trim() : "");
  // Untrusted text that may reach a log or terminal.
  const clean = words.replace(/\p{Cc}+/gu, " ").slice(0, 300);
  return clean === "" ? `status ${status}` : `status ${status}: ${clean}`;
}

function describe(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    return value
      .map((one) =>
        isRecord(one)
          ? `${Array.isArray(one.loc) ? one.loc.join(".") : ""} ${String(one.msg)}`.trim()
          : String(one),
      )
      .join("; ");
  }
  if (!isRecord(value)) return undefined;
  return [value.code, value.message].filter((part) => typeof part === "string").join(": ");
}

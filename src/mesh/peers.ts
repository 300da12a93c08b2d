/** Calls to other agents. Their answers are data from strangers: bounded, parsed once, never trusted. */
import { type HttpClient, NetError, parseRetryAfter } from "../net/index.js";
import { checkAgentId } from "./identity/agent-id.js";
import { parsePublicKey } from "./identity/keys.js";
import { type Route, routeUrl } from "./message/endpoint.js";
import { isRecord } from "./message/extras.js";
import { ASP_VERSION } from "./message/types.js";

export interface PeerAnswer {
  readonly status: number;
  /** The JSON value, if the body is one. */
  readonly value: unknown;
  /** Milliseconds. */
  readonly retryAfter: number | undefined;
  /** What went wrong, in the peer's words, cut to a line. */
  readonly complaint: string;
}

export interface Peers {
  /** @throws NetError when there is no answer. */
  post(endpoint: string, route: Route, body: unknown, signal?: AbortSignal): Promise<PeerAnswer>;
  /** The key that an agent's endpoint shows, or why there is none. Never throws. */
  info(
    endpoint: string,
    agentId: string,
  ): Promise<{ readonly publicKey: string } | { readonly reason: string; readonly unreachable: boolean }>;
}

export function createPeers(http: HttpClient, selfId: string, now: () => number): Peers {
  const headers = { "x-agent-id": selfId, "x-swarm-protocol": ASP_VERSION };
  return {
    async post(endpoint, route, body, signal) {
      const answer = await http.request(routeUrl(endpoint, route), {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(body),
        timeLimit: 30_000,
        maxBytes: 4 * 1024 * 1024,
        ...(signal !== undefined && { signal }),
      });
      const value = parseJson(answer.text());
      return {
        status: answer.status,
        value,
        retryAfter: parseRetryAfter(answer.headers["retry-after"], now()),
        complaint: complaintOf(answer.status, value, answer.text()),
      };
    },

    async info(endpoint, agentId) {
      try {
        // No redirects, 5 seconds, 64 KiB: enough for an honest answer.
        const answer = await http.request(routeUrl(endpoint, "info"), {
          headers,
          timeLimit: 5_000,
          maxBytes: 64 * 1024,
        });
        const value = parseJson(answer.text());
        if (answer.status !== 200 || !isRecord(value)) {
          return { reason: `its info answers ${answer.status}`, unreachable: true };
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

/** The object form, a string `error`, `detail` as text or list, plain text, nothing: all of these are out there. */
function complaintOf(status: number, value: unknown, text: string): string {
  const said = isRecord(value) ? (describe(value.error) ?? describe(value.detail)) : undefined;
  const words = said ?? (value === undefined ? text.trim() : "");
  // Other people's text on its way to a log or terminal.
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

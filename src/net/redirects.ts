/** The next request of a redirect, by RFC 9110, 15.4, and the safety rules of README.md. */
import type { GuardRefusal } from "./guard.js";

export interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const BODY_HEADERS = new Set(["content-type", "content-length", "content-encoding", "content-language"]);
/** Headers that do not identify the caller. Any other one might be a credential, so it stays with its origin. */
const HARMLESS = new Set(["accept", "accept-language", "user-agent"]);

export function isRedirect(status: number, location: string | undefined): location is string {
  return REDIRECTS.has(status) && location !== undefined;
}

export type NextHop =
  | { readonly next: Hop }
  | {
      readonly refusal: Pick<GuardRefusal, "message"> & { readonly code: "blocked_redirect" | "invalid_url" };
    };

export function nextHop(hop: Hop, status: number, location: string): NextHop {
  if (!URL.canParse(location, hop.url.href)) {
    return { refusal: { code: "invalid_url", message: "redirects to an invalid URL" } };
  }
  const url = new URL(location, hop.url);
  if (hop.url.protocol === "https:" && url.protocol !== "https:") {
    return refuse(`redirects from https to ${url.protocol}//${url.host}`);
  }
  const becomesGet = status === 303 ? hop.method !== "HEAD" : status < 307 && hop.method === "POST";
  const sameOrigin = url.origin === hop.url.origin;
  if (!sameOrigin && !becomesGet && hop.body !== undefined) {
    return refuse(`redirects a request with a body to another origin, ${url.origin}`);
  }
  const headers = Object.entries(hop.headers).filter(([name]) => {
    const lower = name.toLowerCase();
    if (becomesGet && BODY_HEADERS.has(lower)) return false;
    return sameOrigin || HARMLESS.has(lower);
  });
  return {
    next: {
      url,
      method: becomesGet ? "GET" : hop.method,
      headers: Object.fromEntries(headers),
      body: becomesGet ? undefined : hop.body,
    },
  };
}

function refuse(message: string): NextHop {
  return { refusal: { code: "blocked_redirect", message } };
}

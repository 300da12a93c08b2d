/**
 * The outbound guard: whether a URL that came from outside may be called. A verdict is `undefined` (it may) or a
 * refusal with its reason, never a bare boolean.
 */
import { type AllowRule, type Destination, isAllowed, isLoopbackName, parseAllowRule } from "./allow.js";
import { blockedRangeOf, isLoopback, parseAddress } from "./ranges.js";

export interface Refusal {
  readonly code: "invalid_url" | "insecure_url" | "blocked_address";
  readonly message: string;
}

export interface GuardOptions {
  /** Exceptions, for networks of one's own and for development. Default: none. See parseAllowRule. */
  readonly allow?: readonly string[];
}

export interface Guard {
  /** Judges what can be known without resolving the name. To be asked when a URL is stored, too. */
  checkUrl(url: string | URL): Refusal | undefined;
  /** Judges a destination whose address is known: the word that counts, because nothing changes after it. */
  checkAddress(scheme: "http:" | "https:", host: string, port: number, address: string): Refusal | undefined;
}

/** @throws AllowRuleError when a rule cannot be read. */
export function createGuard({ allow = [] }: GuardOptions = {}): Guard {
  const rules = allow.map(parseAllowRule);
  return {
    checkUrl(text) {
      const url = typeof text === "string" ? (URL.canParse(text) ? new URL(text) : undefined) : text;
      if (url === undefined) return refuse("invalid_url", "this is not a URL");
      if (url.protocol !== "https:" && url.protocol !== "http:") {
        return refuse("invalid_url", `the scheme must be https, not ${url.protocol.slice(0, -1)}`);
      }
      if (url.username !== "" || url.password !== "") {
        return refuse("invalid_url", "a URL must not carry a user name or password: use a header");
      }
      const host = hostOf(url);
      const port = portOf(url);
      if (parseAddress(host) !== undefined) return checkAddress(rules, url.protocol, host, port, host);
      if (url.protocol === "http:" && !isLoopbackName(host) && !isAllowed(rules, { host, port })) {
        return insecure(host);
      }
      return undefined;
    },
    checkAddress: (scheme, host, port, address) => checkAddress(rules, scheme, host, port, address),
  };
}

function checkAddress(
  rules: readonly AllowRule[],
  scheme: "http:" | "https:",
  host: string,
  port: number,
  text: string,
): Refusal | undefined {
  const address = parseAddress(text);
  if (address === undefined) return refuse("blocked_address", `${JSON.stringify(text)} is not an address`);
  const destination: Destination = { host, port, address };
  if (isAllowed(rules, destination)) return undefined;
  const range = blockedRangeOf(address);
  if (range !== undefined) {
    const resolved = host === text ? "" : `${host} resolves to `;
    return refuse(
      "blocked_address",
      `${resolved}${text}, which is ${range.name} (${range.cidr}, ${range.source}): add it to the allow-list if it is meant`,
    );
  }
  return scheme === "http:" && !isLoopback(address) ? insecure(host) : undefined;
}

function insecure(host: string): Refusal {
  return refuse(
    "insecure_url",
    `http is accepted for loopback and for hosts on the allow-list only, not for ${host}: use https`,
  );
}

function refuse(code: Refusal["code"], message: string): Refusal {
  return { code, message };
}

/** As sockets want it: IPv6 without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/u, "$1");
}

export function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

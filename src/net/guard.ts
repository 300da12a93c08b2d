/**
 * The outbound guard: whether Mailroom may call a URL that came from outside. A check returns `undefined` (allowed) or
 * a refusal with its reason, never a bare boolean.
 */
import { type AllowRule, type Destination, isAllowed, isLoopbackName, parseAllowRule } from "./allow.js";
import { blockedRangeOf, isLoopback, parseAddress } from "./ranges.js";

export interface GuardRefusal {
  readonly code: "invalid_url" | "insecure_url" | "blocked_address";
  readonly message: string;
}

export interface GuardOptions {
  /** Exceptions for private networks and development. Default: none. See parseAllowRule. */
  readonly allow?: readonly string[];
}

export interface Guard {
  /** Checks what is known without resolving the name. Use it also when a URL is stored. */
  checkUrl(url: string | URL): GuardRefusal | undefined;
  /** Checks a destination with its resolved address. This check is final: the socket uses the same address. */
  checkAddress(
    scheme: "http:" | "https:",
    host: string,
    port: number,
    address: string,
  ): GuardRefusal | undefined;
}

/** @throws MailroomError `invalid_allow_rule` */
export function createGuard({ allow = [] }: GuardOptions = {}): Guard {
  const rules = allow.map(parseAllowRule);
  return {
    checkUrl(text) {
      const url = typeof text === "string" ? (URL.canParse(text) ? new URL(text) : undefined) : text;
      if (url === undefined) return refuse("invalid_url", "not a valid URL");
      if (url.protocol !== "https:" && url.protocol !== "http:") {
        return refuse("invalid_url", `the scheme must be https, not ${url.protocol.slice(0, -1)}`);
      }
      if (url.username !== "" || url.password !== "") {
        return refuse("invalid_url", "a URL must not contain a user name or password: use a header");
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
): GuardRefusal | undefined {
  const address = parseAddress(text);
  if (address === undefined) return refuse("blocked_address", `${JSON.stringify(text)} is not an address`);
  const destination: Destination = { host, port, address };
  if (isAllowed(rules, destination)) return undefined;
  const range = blockedRangeOf(address);
  if (range !== undefined) {
    const resolved = host === text ? "" : `${host} resolves to `;
    return refuse(
      "blocked_address",
      `${resolved}${text}, which is ${range.name} (${range.cidr}, ${range.source}): add it to the allow-list to permit it`,
    );
  }
  return scheme === "http:" && !isLoopback(address) ? insecure(host) : undefined;
}

function insecure(host: string): GuardRefusal {
  return refuse(
    "insecure_url",
    `http is accepted only for loopback and hosts on the allow-list, not for ${host}: use https`,
  );
}

function refuse(code: GuardRefusal["code"], message: string): GuardRefusal {
  return { code, message };
}

/** As sockets expect it: IPv6 without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/u, "$1");
}

export function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

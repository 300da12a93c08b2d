/** `swarm://connect?server=<host>&token=<token>`: a link to a server. `invite` means the same (REF-23). */

/** The parts of a `swarm://` link. */
export interface SwarmUrl {
  readonly action: "connect" | "invite";
  /** The server's URL. */
  readonly url: string;
  readonly token?: string;
}

/**
 * Parses a `swarm://` link.
 * @throws TypeError when the link is invalid
 * @example
 * ```ts
 * const { url, token } = parseSwarmUrl("swarm://connect?server=mail.example.com&token=abc");
 * ```
 */
export function parseSwarmUrl(text: string): SwarmUrl {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "swarm:") throw new TypeError(`'${text}' is not a swarm:// URL`);
  const action = url.hostname;
  if (action !== "connect" && action !== "invite") {
    throw new TypeError(`unknown action 'swarm://${action}'; write swarm://connect?server=HOST`);
  }
  const server = url.searchParams.get("server");
  if (server === null || server === "") {
    throw new TypeError(`the link has no server; write swarm://${action}?server=HOST`);
  }
  const token = url.searchParams.get("token");
  return { action, url: secureUrl(server), ...(token !== null && token !== "" && { token }) };
}

/** Links come from untrusted sources, so their servers are always called over https. */
function secureUrl(server: string): string {
  const text = `https://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    url.host === "" ||
    url.username !== "" ||
    url.pathname !== "/" ||
    url.search !== ""
  ) {
    throw new TypeError(`'${server}' is not a host; write swarm://connect?server=example.com`);
  }
  return url.origin;
}

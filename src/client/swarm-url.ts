/** `swarm://connect?server=<host>&token=<token>`: a link that leads to a server (mail.md calls `invite` the same). */

export interface SwarmUrl {
  readonly action: "connect" | "invite";
  /** Where the server is, as a URL. */
  readonly url: string;
  readonly token?: string;
}

/** @throws TypeError that says what is wrong with the link */
export function parseSwarmUrl(text: string): SwarmUrl {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "swarm:") throw new TypeError(`'${text}' is not a swarm:// URL`);
  const action = url.hostname;
  if (action !== "connect" && action !== "invite") {
    throw new TypeError(`'swarm://${action}' means nothing: write swarm://connect?server=HOST`);
  }
  const server = url.searchParams.get("server");
  if (server === null || server === "") {
    throw new TypeError(`the link names no server: write swarm://${action}?server=HOST`);
  }
  const token = url.searchParams.get("token");
  return { action, url: secureUrl(server), ...(token !== null && token !== "" && { token }) };
}

/** A link is something that strangers hand out, so what it leads to is always asked for over https. */
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
    throw new TypeError(`'${server}' is not a host: write swarm://connect?server=example.com`);
  }
  return url.origin;
}

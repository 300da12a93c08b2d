/** Two guards for outgoing calls, chosen by the origin of the URL. */
import { createGuard, type Guard, hostOf, namesThisMachine, portOf } from "../net/index.js";

export interface FederationGuards {
  /** For URLs from agents and remote servers: allows only what the operator allowed. */
  readonly untrusted: Guard;
  /**
   * For URLs of registered swarms. An admin entered them, so a URL that names this machine is allowed. A public name
   * that resolves to this machine (DNS rebinding) is not, unless the operator allowed it.
   */
  readonly registered: Guard;
}

export function federationGuards(allow: readonly string[]): FederationGuards {
  const strict = createGuard({ allow });
  const local = createGuard({ allow: ["loopback", ...allow] });
  const fitting = (host: string): Guard => (namesThisMachine(host) ? local : strict);
  return {
    untrusted: {
      checkUrl: (text) => strict.checkUrl(text) ?? checkLocalName(strict, text),
      checkAddress: strict.checkAddress,
    },
    registered: {
      checkUrl: (text) => {
        const url = parse(text);
        return fitting(url === undefined ? "" : hostOf(url)).checkUrl(text);
      },
      checkAddress: (scheme, host, port, address) => fitting(host).checkAddress(scheme, host, port, address),
    },
  };
}

/** Checks `localhost` without resolving it; other names are checked when connecting. */
function checkLocalName(guard: Guard, text: string | URL): ReturnType<Guard["checkUrl"]> {
  const url = parse(text);
  if (url === undefined || !namesThisMachine(hostOf(url))) return undefined;
  const scheme = url.protocol === "https:" ? "https:" : "http:";
  return guard.checkAddress(scheme, hostOf(url), portOf(url), "127.0.0.1");
}

function parse(text: string | URL): URL | undefined {
  if (typeof text !== "string") return text;
  return URL.canParse(text) ? new URL(text) : undefined;
}

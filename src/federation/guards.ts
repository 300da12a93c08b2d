/** Whom federation may call: two guards, by where a URL came from. */
import { createGuard, type Guard, hostOf, namesThisMachine, portOf } from "../net/index.js";

export interface FederationGuards {
  /** For URLs that agents and strangers bring: nothing but what the operator allowed. */
  readonly foreign: Guard;
  /**
   * For the URLs of registered swarms. An admin named them, so this machine may be meant, if it was named: a name that
   * turns out to lead here (DNS rebinding) leads nowhere, unless the operator allowed it.
   */
  readonly registered: Guard;
}

export function federationGuards(allow: readonly string[]): FederationGuards {
  const strict = createGuard({ allow });
  const local = createGuard({ allow: ["loopback", ...allow] });
  const fitting = (host: string): Guard => (namesThisMachine(host) ? local : strict);
  return {
    foreign: {
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

/** `localhost` needs no resolving to be judged; other names are judged when they are connected to. */
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

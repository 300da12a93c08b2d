/** Determines the client address of WebSocket upgrades, which bypass the framework's own logic. */
import type { IncomingMessage } from "node:http";
import { BlockList, isIPv6 } from "node:net";
import type { ListenerOptions } from "./options.js";

export type TrustProxy = ListenerOptions["trustProxy"];

/** The part of a request that is needed. */
interface Asking {
  readonly socket: Pick<IncomingMessage["socket"], "remoteAddress">;
  readonly headers: IncomingMessage["headers"];
}

/** The framework's names for address ranges. */
const RANGES: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.1/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/** Follows `X-Forwarded-For` from the socket through trusted proxies, like `request.ip`. */
export function peerAddress(trustProxy: TrustProxy): (request: Asking) => string {
  const isTrusted = trustOf(trustProxy);
  return ({ socket, headers }) => {
    const forwarded = String(headers["x-forwarded-for"] ?? "")
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .reverse();
    let address = socket.remoteAddress ?? "";
    for (const [hop, before] of forwarded.entries()) {
      if (!isTrusted(address, hop)) break;
      address = before;
    }
    return address;
  };
}

/** Whether an address, and the hop at which it is seen, is a trusted proxy. */
export function trustOf(trustProxy: TrustProxy): (address: string, hop: number) => boolean {
  if (trustProxy === undefined || typeof trustProxy === "boolean") return () => trustProxy === true;
  if (typeof trustProxy === "number") return (_address, hop) => hop < trustProxy;
  const listed = typeof trustProxy === "string" ? trustProxy.split(",") : trustProxy;
  const trusted = new BlockList();
  for (const one of listed.flatMap((name) => RANGES[name.trim()] ?? [name.trim()])) {
    const [address = "", prefix] = one.split("/");
    if (prefix === undefined) trusted.addAddress(address, familyOf(address));
    else trusted.addSubnet(address, Number(prefix), familyOf(address));
  }
  return (address) => {
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
    return trusted.check(plain, familyOf(plain));
  };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}

/** The operator's exceptions to the guard. They come from the configuration, never from a message. */
import ipaddr from "ipaddr.js";
import { MailroomError } from "../base/index.js";
import { type IpAddress, isLoopback, parseAddress } from "./ranges.js";

export type AllowRule =
  /** This machine, at any of its loopback addresses. */
  | { readonly kind: "loopback"; readonly port?: number }
  /** A name, whatever it resolves to: the operator also trusts the resolver. */
  | { readonly kind: "host"; readonly host: string; readonly port?: number }
  | { readonly kind: "network"; readonly network: [IpAddress, number]; readonly port?: number };

function invalidRule(text: string): MailroomError {
  return new MailroomError(
    "invalid_allow_rule",
    `${JSON.stringify(text)} is not a rule of the allow-list: write "loopback", a host name, an address or a network ` +
      "such as 10.0.0.0/8, each with an optional :port (IPv6 in brackets: [fd00::/8]:443)",
  );
}

const PORT_SUFFIX = /^(?<rest>.*?)(?::(?<port>\d{1,5}))?$/u;
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*$/u;

/**
 * `loopback`, `desk.internal`, `desk.internal:8443`, `10.0.0.0/8`, `192.168.1.7:8000`, `[::1]:8443`, `[fd00::/8]`.
 * @throws MailroomError `invalid_allow_rule`
 */
export function parseAllowRule(text: string): AllowRule {
  const trimmed = text.trim().toLowerCase();
  // IPv6 addresses contain colons: without brackets there is no port.
  const bareIPv6 = !trimmed.startsWith("[") && trimmed.split(":").length > 2;
  const groups = bareIPv6 ? { rest: trimmed, port: undefined } : PORT_SUFFIX.exec(trimmed)?.groups;
  const rest = groups?.rest?.replace(/^\[(.*)\]$/u, "$1") ?? "";
  const port = groups?.port === undefined ? undefined : Number(groups.port);
  if (port !== undefined && (port < 1 || port > 65_535)) throw invalidRule(text);
  const withPort = port === undefined ? {} : { port };
  if (rest === "loopback" || rest === "localhost") return { kind: "loopback", ...withPort };
  const network = parseNetwork(rest);
  if (network !== undefined) return { kind: "network", network, ...withPort };
  if (!HOST_NAME.test(rest)) throw invalidRule(text);
  return { kind: "host", host: rest, ...withPort };
}

export interface Destination {
  /** As in the URL: lower case, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Absent until the name is resolved. */
  readonly address?: IpAddress;
}

export function isAllowed(rules: readonly AllowRule[], { host, port, address }: Destination): boolean {
  return rules.some((rule) => {
    if (rule.port !== undefined && rule.port !== port) return false;
    switch (rule.kind) {
      case "loopback":
        return address === undefined ? isLoopbackName(host) : isLoopback(address);
      case "host":
        return rule.host === host;
      case "network": {
        const [network, bits] = rule.network;
        return address !== undefined && address.kind() === network.kind() && address.match(network, bits);
      }
      default:
        return rule satisfies never;
    }
  });
}

/** RFC 6761, 6.3: `localhost` and names that end in `.localhost` are this machine. */
export function isLoopbackName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

/** Whether a URL's host is this machine, without resolving it. */
export function namesThisMachine(host: string): boolean {
  const address = parseAddress(host);
  return address === undefined ? isLoopbackName(host) : isLoopback(address);
}

function parseNetwork(text: string): [IpAddress, number] | undefined {
  const address = parseAddress(text);
  if (address !== undefined) return [address, address.kind() === "ipv6" ? 128 : 32];
  return ipaddr.isValidCIDR(text) ? ipaddr.parseCIDR(text) : undefined;
}

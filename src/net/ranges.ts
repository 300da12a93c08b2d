/**
 * Addresses that an outside party must not make Mailroom connect to. The rows follow the IANA special-purpose
 * registries (RFC 6890 and its updates); each names the document that reserves the range.
 */
import ipaddr from "ipaddr.js";

export interface BlockedRange {
  readonly cidr: string;
  readonly name: string;
  readonly source: string;
}

export const BLOCKED_IPV4: readonly BlockedRange[] = [
  { cidr: "0.0.0.0/8", name: "this network", source: "RFC 791, 3.2" },
  { cidr: "10.0.0.0/8", name: "private use", source: "RFC 1918" },
  { cidr: "100.64.0.0/10", name: "shared address space", source: "RFC 6598" },
  { cidr: "127.0.0.0/8", name: "loopback", source: "RFC 1122, 3.2.1.3" },
  // Metadata services of most clouds answer at 169.254.169.254.
  { cidr: "169.254.0.0/16", name: "link local", source: "RFC 3927" },
  { cidr: "172.16.0.0/12", name: "private use", source: "RFC 1918" },
  { cidr: "192.0.0.0/24", name: "IETF protocol assignments", source: "RFC 6890, 2.1" },
  { cidr: "192.0.2.0/24", name: "documentation", source: "RFC 5737" },
  { cidr: "192.88.99.0/24", name: "6to4 relay (deprecated)", source: "RFC 7526" },
  { cidr: "192.168.0.0/16", name: "private use", source: "RFC 1918" },
  { cidr: "198.18.0.0/15", name: "benchmarking", source: "RFC 2544" },
  { cidr: "198.51.100.0/24", name: "documentation", source: "RFC 5737" },
  { cidr: "203.0.113.0/24", name: "documentation", source: "RFC 5737" },
  // Looks public, but inside a virtual machine it is a service of the host.
  { cidr: "168.63.129.16/32", name: "cloud host service", source: "Azure: IP address 168.63.129.16" },
  { cidr: "224.0.0.0/4", name: "multicast", source: "RFC 5771" },
  { cidr: "240.0.0.0/4", name: "reserved, limited broadcast", source: "RFC 1112, 4; RFC 8190" },
];

export const BLOCKED_IPV6: readonly BlockedRange[] = [
  { cidr: "::/128", name: "unspecified", source: "RFC 4291, 2.5.2" },
  { cidr: "::1/128", name: "loopback", source: "RFC 4291, 2.5.3" },
  { cidr: "::/96", name: "IPv4-compatible (deprecated)", source: "RFC 4291, 2.5.5.1" },
  { cidr: "64:ff9b:1::/48", name: "local-use IPv4/IPv6 translation", source: "RFC 8215" },
  { cidr: "100::/64", name: "discard only", source: "RFC 6666" },
  { cidr: "100:0:0:1::/64", name: "dummy prefix", source: "RFC 9780" },
  // Contains Teredo (RFC 4380), benchmarking (RFC 5180), ORCHID (RFC 4843, 7343) and other tunnels and identifiers.
  { cidr: "2001::/23", name: "IETF protocol assignments", source: "RFC 2928" },
  { cidr: "2001:db8::/32", name: "documentation", source: "RFC 3849" },
  // Embeds an IPv4 address: the relay's destination cannot be checked.
  { cidr: "2002::/16", name: "6to4 (deprecated)", source: "RFC 3056; RFC 7526" },
  { cidr: "3fff::/20", name: "documentation", source: "RFC 9637" },
  { cidr: "5f00::/16", name: "segment routing", source: "RFC 9602" },
  { cidr: "fc00::/7", name: "unique local", source: "RFC 4193" },
  { cidr: "fe80::/10", name: "link local", source: "RFC 4291, 2.5.6" },
  { cidr: "fec0::/10", name: "site local (deprecated)", source: "RFC 3879" },
  { cidr: "ff00::/8", name: "multicast", source: "RFC 4291, 2.7" },
];

/** Everything else that is not global unicast is unassigned. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");
const NOT_GLOBAL_UNICAST: BlockedRange = {
  cidr: "::/0 without 2000::/3",
  name: "not global unicast",
  source: "RFC 4291, 2.4",
};

/** RFC 6052, 2.1: the prefix under which a translator reaches the IPv4 address in the last 32 bits. */
const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");

const parsed4 = BLOCKED_IPV4.map((range) => ({ range, cidr: ipaddr.IPv4.parseCIDR(range.cidr) }));
const parsed6 = BLOCKED_IPV6.map((range) => ({ range, cidr: ipaddr.IPv6.parseCIDR(range.cidr) }));

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Parses an address in any spelling that a resolver or URL can have, and decodes forms that lead to an IPv4 address.
 * `undefined` if the text is not an address.
 */
export function parseAddress(text: string): IpAddress | undefined {
  // A zone id (`%eth0`, RFC 4007) selects an interface, never another address.
  const bare = text.replace(/^\[(.*)\]$/u, "$1").replace(/%.*$/u, "");
  if (!ipaddr.isValid(bare)) return undefined;
  const address = ipaddr.parse(bare);
  if (!isIPv6(address)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  if (address.match(NAT64)) return new ipaddr.IPv4(address.toByteArray().slice(12));
  return address;
}

/** The row that blocks this address; `undefined` for a public one. */
export function blockedRangeOf(address: IpAddress): BlockedRange | undefined {
  if (!isIPv6(address)) return parsed4.find(({ cidr }) => address.match(cidr))?.range;
  const row = parsed6.find(({ cidr }) => address.match(cidr))?.range;
  return row ?? (address.match(GLOBAL_UNICAST) ? undefined : NOT_GLOBAL_UNICAST);
}

export function isLoopback(address: IpAddress): boolean {
  return address.range() === "loopback";
}

export function isIPv6(address: IpAddress): address is ipaddr.IPv6 {
  return address.kind() === "ipv6";
}

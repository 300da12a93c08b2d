/** Finds the client's address behind trusted proxies, and the network that rate limits count as one caller. */
import { isIP } from "node:net";
import { isIPv6, parseAddress } from "../../net/index.js";

/** Header names in lower case. */
type Headers = Readonly<Record<string, string | undefined>>;

/**
 * Each proxy adds the address that it saw to the end of `X-Forwarded-For`. The address that the outermost trusted proxy saw
 * is therefore `proxies` entries from the end; anything before it was sent by the client itself.
 */
export function addressBehind(
  proxies: number,
  { headers, address }: { readonly headers: Headers; readonly address: string },
): string {
  if (proxies === 0) return address;
  const seen = (headers["x-forwarded-for"] ?? "").split(",").map((one) => one.trim());
  const outermost = seen.at(-proxies) ?? "";
  return isIP(outermost) === 0 ? address : outermost;
}

/**
 * Returns the key for rate limits. An IPv6 host usually owns its whole /64, so the /64 counts as one caller. An IPv4
 * address that a dual-stack socket maps to IPv6 counts as the IPv4 address.
 */
export function networkOf(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === undefined) return address;
  if (!isIPv6(parsed)) return parsed.toString();
  const prefix = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${prefix.join(":")}::/64`;
}

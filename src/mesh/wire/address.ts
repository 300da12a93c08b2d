/** Whose address a request has, when proxies of ours stand before the listener, and what is counted as one caller. */
import { isIP } from "node:net";
import { isIPv6, parseAddress } from "../../net/ranges.js";
import type { RequestHead } from "./handler.js";

/**
 * Each proxy adds the address that it saw to the end of `X-Forwarded-For`, so the one that the outermost of ours saw
 * stands as many places from the end as there are proxies. What stands before it was said by the caller itself.
 */
export function addressBehind(
  proxies: number,
  { headers, address }: Pick<RequestHead, "headers" | "address">,
): string {
  if (proxies === 0) return address;
  const seen = (headers["x-forwarded-for"] ?? "").split(",").map((one) => one.trim());
  const outermost = seen.at(-proxies) ?? "";
  return isIP(outermost) === 0 ? address : outermost;
}

/**
 * What limits are counted by. Whoever has one address of IPv6 has the whole /64 around it, so that is one caller; an
 * address of IPv4 that a dual-stack socket wraps in IPv6 is the same as without the wrapping.
 */
export function networkOf(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === undefined) return address;
  if (!isIPv6(parsed)) return parsed.toString();
  const prefix = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${prefix.join(":")}::/64`;
}

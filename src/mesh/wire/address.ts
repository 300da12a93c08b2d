/** Whose address a request has, when proxies of ours stand before the listener. */
import { isIP } from "node:net";
import type { MeshRequest } from "./handler.js";

/**
 * Each proxy adds the address that it saw to the end of `X-Forwarded-For`, so the one that the outermost of ours saw
 * stands as many places from the end as there are proxies. What stands before it was said by the caller itself.
 */
export function addressBehind(proxies: number, { headers, address }: MeshRequest): string {
  if (proxies === 0) return address;
  const seen = (headers["x-forwarded-for"] ?? "").split(",").map((one) => one.trim());
  const outermost = seen.at(-proxies) ?? "";
  return isIP(outermost) === 0 ? address : outermost;
}

/** Base URLs of servers. They come from remote input, so parsing must take linear time. */

/** Longer URLs are rejected. */
const LONGEST_URL = 2_048;

/** Returns `https://host/path` without trailing slashes, or undefined for an invalid base URL. */
export function normalizeUrl(text: string): string | undefined {
  if (text.length > LONGEST_URL || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") return undefined;
  return withoutSlashes(`${url.origin === "null" ? url.protocol : url.origin}${url.pathname}`);
}

/** A loop, because a regular expression would take quadratic time on runs of slashes. */
export function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end--;
  return text.slice(0, end);
}

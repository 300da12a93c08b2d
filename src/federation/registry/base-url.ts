/** Base URLs of servers. Strangers write them, so reading one takes time in proportion to its length at most. */

/** Longer ones are nobody's; they would only be carried about. */
const LONGEST_URL = 2_048;

/** `https://host/path` without a slash at the end; nothing if it is no such URL. */
export function normaliseUrl(text: string): string | undefined {
  if (text.length > LONGEST_URL || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") return undefined;
  return withoutSlashes(`${url.origin === "null" ? url.protocol : url.origin}${url.pathname}`);
}

/** A pattern for this would look at every run of slashes again from each of its slashes. */
export function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end--;
  return text.slice(0, end);
}

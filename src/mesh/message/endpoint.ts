/** ASP: Endpoint. The base URL of an agent, and its route URLs. */
import { LIMITS } from "./types.js";

export function isHttpsUrl(text: string): boolean {
  return text.length <= LIMITS.urlCharacters && URL.canParse(text) && new URL(text).protocol === "https:";
}

/** Returns why this is not a valid endpoint; `undefined` if it is valid. */
export function checkEndpoint(text: string): string | undefined {
  if (text.length > LIMITS.urlCharacters) return `must not be longer than ${LIMITS.urlCharacters} characters`;
  if (!URL.canParse(text)) return "must be a URL";
  const url = new URL(text);
  if (url.protocol !== "https:") return "must be an https URL";
  if (url.username !== "" || url.password !== "") return "must not contain a user name or password";
  if (url.hash !== "") return "must not have a fragment";
  if (url.search !== "") return "must not have a query";
  return undefined;
}

export type Route = "message" | "join" | "info" | "health";

/** An endpoint already contains the `/swarm` prefix; a bare origin, which also occurs, gets it here (REF-37). */
export function routeUrl(endpoint: string, route: Route): string {
  const url = new URL(endpoint);
  const path = withoutTrailingSlashes(url.pathname);
  return `${url.origin}${path === "" ? "/swarm" : path}/${route}`;
}

/** A loop, because `/\/+$/` takes quadratic time for many slashes that are not at the end. */
export function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end -= 1;
  return path.slice(0, end);
}

/** Whether two endpoints are equivalent. */
export function sameEndpoint(a: string, b: string): boolean {
  return URL.canParse(a) && URL.canParse(b) && routeUrl(a, "info") === routeUrl(b, "info");
}

/** ASP: Endpoint. Where an agent is called, and under which paths. */
import { LIMITS } from "./types.js";

export function isHttpsUrl(text: string): boolean {
  return text.length <= LIMITS.urlCharacters && URL.canParse(text) && new URL(text).protocol === "https:";
}

/** Why this cannot be an endpoint; `undefined` if it can. */
export function checkEndpoint(text: string): string | undefined {
  if (text.length > LIMITS.urlCharacters) return `must not be longer than ${LIMITS.urlCharacters} characters`;
  if (!URL.canParse(text)) return "must be a URL";
  const url = new URL(text);
  if (url.protocol !== "https:") return "must be an https URL";
  if (url.username !== "" || url.password !== "") return "must not carry a user name or password";
  if (url.hash !== "") return "must not have a fragment";
  if (url.search !== "") return "must not have a query";
  return undefined;
}

export type Route = "message" | "join" | "info" | "health";

/** An endpoint holds the `/swarm` prefix already; a bare origin, which the seed shows too, gets it here. */
export function routeUrl(endpoint: string, route: Route): string {
  const url = new URL(endpoint);
  const path = url.pathname.replace(/\/+$/u, "");
  return `${url.origin}${path === "" ? "/swarm" : path}/${route}`;
}

/** Whether two endpoints are the same place, however they are written. */
export function sameEndpoint(a: string, b: string): boolean {
  return URL.canParse(a) && URL.canParse(b) && routeUrl(a, "info") === routeUrl(b, "info");
}

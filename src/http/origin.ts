/**
 * Decisions D6: a server in development mode believes everybody on this machine. A page in a browser is not somebody
 * on this machine, even when its request comes from there, so foreign names and origins are turned away.
 */
import { HttpError } from "./errors.js";
import type { CorsOptions } from "./options.js";

export interface OriginHeaders {
  readonly host?: string | undefined;
  readonly ":authority"?: string | string[] | undefined;
  readonly origin?: string | undefined;
}

/** @throws HttpError `foreign_origin` */
export function checkDevelopmentOrigin(headers: OriginHeaders, cors: CorsOptions | undefined): void {
  const authority = headers[":authority"];
  const host = headers.host ?? (typeof authority === "string" ? authority : undefined);
  // A name that somebody else controls may point to this machine (DNS rebinding).
  if (host !== undefined && !isLoopback(hostOf(`http://${host}`))) {
    throw new HttpError("foreign_origin", "in development mode this server is reached as localhost only");
  }
  const { origin } = headers;
  if (origin === undefined || cors?.origins.includes(origin) === true) return;
  if (!isLoopback(hostOf(origin))) {
    throw new HttpError("foreign_origin", "in development mode pages of other origins are turned away");
  }
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

export function isLoopback(host: string | undefined): boolean {
  if (host === undefined) return false;
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "[::1]" ||
    /^127(\.\d{1,3}){3}$/.test(host)
  );
}

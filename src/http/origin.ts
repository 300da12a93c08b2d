/**
 * A server in development mode accepts every caller on this machine (decision D6). A page in a browser is not such a
 * caller, even though its request comes from this machine, so foreign hosts and origins are rejected.
 */
import { isLoopbackHost, MailroomError } from "../base/index.js";
import type { CorsOptions } from "./options.js";

export interface OriginHeaders {
  readonly host?: string | undefined;
  readonly ":authority"?: string | string[] | undefined;
  readonly origin?: string | undefined;
}

/** @throws MailroomError `foreign_origin` */
export function checkDevelopmentOrigin(headers: OriginHeaders, cors: CorsOptions | undefined): void {
  const authority = headers[":authority"];
  const host = headers.host ?? (typeof authority === "string" ? authority : undefined);
  // A foreign name may resolve to this machine (DNS rebinding).
  if (host !== undefined && !isLoopbackHost(hostOf(`http://${host}`))) {
    throw new MailroomError(
      "foreign_origin",
      "in development mode this server accepts only the host localhost",
    );
  }
  const { origin } = headers;
  if (origin === undefined || cors?.origins.includes(origin) === true) return;
  if (!isLoopbackHost(hostOf(origin))) {
    throw new MailroomError(
      "foreign_origin",
      "in development mode requests from pages of other origins are rejected",
    );
  }
}

/** Returns an empty string for an invalid URL. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : "";
}

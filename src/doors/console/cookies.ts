/** The console's cookie, and which requests may use it. */
import { MailroomError } from "../../base/index.js";
import type { RequestOrigin } from "../../extension/index.js";
import type { Session, Sessions } from "./sessions.js";

/** The header in which the page sends its proof. Pages of other origins cannot send it: the preflight is refused. */
export const PROOF_HEADER = "x-mailroom-console";

/** One host can have several servers, and cookies know no ports. */
const NAME = /^(?:__Host-)?mailroom_\d{1,5}$/;
const MOST_TRIED = 16;
const LONGEST_PROOF = 64;

export interface CookiePlace {
  readonly host: string;
  /** Whether the browser speaks HTTPS, perhaps to a proxy. */
  readonly secure: boolean;
}

/** @param seconds 0 removes it */
export function cookieHeader({ host, secure }: CookiePlace, value: string, seconds: number): string {
  const port = /:(\d+)$/.exec(host)?.[1] ?? (secure ? "443" : "80");
  // Browsers accept this prefix only with `Secure` and for this host alone.
  const prefix = secure ? "__Host-" : "";
  const attributes = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${Math.floor(seconds)}${secure ? "; Secure" : ""}`;
  return `${prefix}mailroom_${port}=${value}; ${attributes}`;
}

/** The session of a request: its cookie counts only with the proof, and only from the page's own origin. */
export function sessionOf(
  sessions: Sessions,
  request: RequestOrigin,
  publicUrl: string | undefined,
): Session | undefined {
  const proof = request.headers[PROOF_HEADER];
  if (typeof proof !== "string" || !isOwnOrigin(request, publicUrl)) return undefined;
  return sessionWith(sessions, request.headers.cookie, proof);
}

/** For WebSockets, which cannot send headers: the proof comes with the first message. */
export function sessionWith(
  sessions: Sessions,
  cookies: string | undefined,
  proof: string,
): Session | undefined {
  if (cookies === undefined || proof === "" || proof.length > LONGEST_PROOF) return undefined;
  let tried = 0;
  for (const part of cookies.split(";")) {
    const at = part.indexOf("=");
    if (at < 0 || !NAME.test(part.slice(0, at).trim())) continue;
    const session = sessions.open(part.slice(at + 1).trim(), proof);
    if (session !== undefined) return session;
    if (++tried === MOST_TRIED) return undefined;
  }
  return undefined;
}

/** @throws MailroomError `foreign_origin` */
export function assertOwnOrigin(request: RequestOrigin, publicUrl: string | undefined): void {
  if (isOwnOrigin(request, publicUrl)) return;
  throw new MailroomError("foreign_origin", "only the console's own page may do this");
}

/**
 * Browsers say where a request comes from. What they say in `Sec-Fetch-Site` holds behind every proxy; older ones send
 * `Origin` only, which must be the host that was called. Programs send neither.
 */
function isOwnOrigin({ headers, host }: RequestOrigin, publicUrl: string | undefined): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  const { origin } = headers;
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  const from = new URL(origin).host;
  return from === host || (publicUrl !== undefined && from === new URL(publicUrl).host);
}

/** Sign in to the console, see who is signed in, sign out. */
import { z } from "zod";
import type { Principal } from "../../auth/index.js";
import { MailroomError } from "../../base/index.js";
import {
  definePublicRoute,
  NO_INPUT,
  PUBLIC,
  type Route,
  type RouteRequest,
  type ServerFacts,
} from "../../extension/index.js";
import { assertOwnOrigin, type CookiePlace, cookieHeader, PROOF_HEADER, sessionOf } from "./cookies.js";
import type { SignInLinks } from "./links.js";
import type { Sessions } from "./sessions.js";

export interface SessionRouteParts {
  readonly sessions: Sessions;
  readonly links: SignInLinks;
  readonly server: ServerFacts;
  readonly path: string;
  /** Milliseconds that a session lasts. */
  readonly lifetime: number;
}

const SignIn = z
  .strictObject({
    token: z.string().min(1).max(16_384).exactOptional(),
    code: z.string().min(1).max(256).exactOptional().meta({
      description: "From a link that `mailroom console` made, instead of a token.",
    }),
  })
  .meta({ id: "ConsoleSignIn" });

const Who = z.object({
  role: z.string(),
  id: z.string(),
  expires: z.number().meta({ description: "Milliseconds since the epoch." }),
});
const Session = Who.meta({ id: "ConsoleSession" });
const NewSession = z
  .object({
    ...Who.shape,
    proof: z.string().meta({ description: `To be sent as \`${PROOF_HEADER}\` beside the cookie.` }),
  })
  .meta({ id: "ConsoleNewSession" });

export function sessionRoutes({ sessions, links, server, path, lifetime }: SessionRouteParts): Route[] {
  const { publicUrl } = server;
  const place = ({ host, secure }: RouteRequest): CookiePlace => ({
    host,
    secure: secure || publicUrl?.startsWith("https:") === true,
  });
  const who = (principal: Principal): { role: string; id: string } => {
    const { role, id } = principal;
    if (role === "user" || role === "admin") return { role, id };
    throw new MailroomError(
      "forbidden",
      "this token serves an agent: sign in with a user's or an admin's token",
    );
  };
  const shared = { ...NO_INPUT, path: `${path}/session`, tag: "server", access: PUBLIC } as const;
  const refusals = [
    "unauthenticated",
    "forbidden",
    "foreign_origin",
    "too_many_failures",
    "auth_unavailable",
  ] as const;
  return [
    definePublicRoute({
      ...shared,
      id: "signIn",
      method: "POST",
      summary: "Sign in to the console",
      description:
        "Seals the token into a cookie that no script can read. The cookie counts only together with the proof.",
      body: SignIn,
      answers: { 200: { description: "Signed in.", schema: NewSession } },
      errors: ["bad_input", ...refusals],
      async handle({ body, request }) {
        assertOwnOrigin(request, publicUrl);
        const { token, code } = body;
        if ((token === undefined) === (code === undefined)) {
          throw new MailroomError("bad_request", "send either token or code", {
            details: { field: "token" },
          });
        }
        // An unknown code is shown to the authenticator, so that it counts as a wrong guess.
        const bearer = token ?? (await links.redeem(code ?? "")) ?? `code ${code}`;
        const identity = who(await request.authenticate(bearer));
        const { sealed, proof, expires } = sessions.seal(bearer);
        request.log.info({ ...identity, link: code !== undefined }, "signed in to the console");
        return {
          status: 200,
          body: { ...identity, expires, proof },
          headers: { "set-cookie": cookieHeader(place(request), sealed, lifetime / 1000) },
        };
      },
    }),
    definePublicRoute({
      ...shared,
      id: "getSession",
      method: "GET",
      summary: "Show who is signed in to the console",
      answers: { 200: { description: "The session of the cookie and the proof.", schema: Session } },
      errors: refusals,
      async handle({ request }) {
        const session = sessionOf(sessions, request, publicUrl);
        if (session === undefined) {
          throw new MailroomError("unauthenticated", "not signed in, or the session has expired", {
            details: { reason: "missing" },
          });
        }
        const identity = who(await request.authenticate(session.bearer));
        return { status: 200, body: { ...identity, expires: session.expires } };
      },
    }),
    definePublicRoute({
      ...shared,
      id: "signOut",
      method: "DELETE",
      summary: "Sign out of the console",
      answers: { 204: { description: "The cookie is removed." } },
      errors: ["foreign_origin"],
      async handle({ request }) {
        assertOwnOrigin(request, publicUrl);
        const session = sessionOf(sessions, request, publicUrl);
        if (session !== undefined) {
          // A token that was revoked before is no reason to stay signed in.
          const principal = await request.authenticate(session.bearer).catch(() => undefined);
          await links.signOut(principal?.tokenId);
        }
        return {
          status: 204,
          body: undefined,
          headers: { "set-cookie": cookieHeader(place(request), "", 0) },
        };
      },
    }),
  ];
}

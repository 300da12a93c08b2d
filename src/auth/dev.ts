import { type Authenticator, type AuthFailure, principalFrom, rejectMalformed } from "./result.js";

/** Names the format: users who try the server cannot guess it. */
const NOT_A_NAME: AuthFailure = {
  ok: false,
  reason: "bad_format",
  detail: "in development mode a bearer token is 'role:id', for example 'user:ann' or 'admin:root'",
};

/**
 * Accepts any `role:id`, and a missing credential as `user:dev`. Only for a server that listens on loopback: the caller
 * must ensure that.
 * @example
 * const result = await devAuthenticator().authenticate("user:ann");
 */
export function devAuthenticator(): Authenticator {
  return {
    async authenticate(bearer) {
      if (bearer === undefined) return principalFrom("dev", { role: "user", id: "dev" });
      const malformed = rejectMalformed(bearer);
      if (malformed !== undefined) return malformed;
      const colon = bearer.indexOf(":");
      if (colon < 0) return NOT_A_NAME;
      return principalFrom("dev", { role: bearer.slice(0, colon), id: bearer.slice(colon + 1) });
    },
  };
}

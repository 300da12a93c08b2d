import { type Authenticator, type AuthFailure, principalFrom, rejectMalformed } from "./result.js";

/** Who meets this is trying the server out, and would not find out by guessing. */
const NOT_A_NAME: AuthFailure = {
  ok: false,
  reason: "bad_format",
  detail: "in development mode a bearer token is 'role:id', for example 'user:ann' or 'admin:root'",
};

/**
 * Takes `role:id` at its word, and nobody for `user:dev`. For a server that only its own machine can reach: whoever
 * opens the door has to see to that.
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

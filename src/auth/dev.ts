import { type Authenticator, failure, principalFrom, rejectMalformed } from "./result.js";

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
      if (colon < 0) return failure("bad_format");
      return principalFrom("dev", { role: bearer.slice(0, colon), id: bearer.slice(colon + 1) });
    },
  };
}

import { type Authenticator, type AuthFailure, failure, INVALID_ROLE, rejectMalformed } from "./result.js";

/** Asks providers in order until one authenticates the caller. */
export function chain(...providers: readonly Authenticator[]): Authenticator {
  return {
    recognises: (bearer) => providers.some((provider) => provider.recognises?.(bearer) ?? false),

    onRevoked(listener) {
      const forget = providers.map((provider) => provider.onRevoked?.(listener));
      return () => {
        for (const stop of forget) stop?.();
      };
    },

    async authenticate(bearer) {
      const malformed = rejectMalformed(bearer);
      if (malformed !== undefined || bearer === undefined) return malformed ?? failure("missing");
      const issuer = providers.find((provider) => provider.recognises?.(bearer) ?? false);
      if (issuer !== undefined) return issuer.authenticate(bearer);
      const refusals: AuthFailure[] = [];
      for (const provider of providers) {
        const result = await provider.authenticate(bearer);
        if (result.ok) return result;
        refusals.push(result);
      }
      return mostTelling(refusals);
    },
  };
}

/** `unavailable` comes first: the unavailable provider might have authenticated the caller. */
function mostTelling(refusals: readonly AuthFailure[]): AuthFailure {
  return (
    refusals.find(({ reason }) => reason === "unavailable") ??
    refusals.find(({ reason }) => reason === "expired") ??
    refusals.find((refusal) => refusal === INVALID_ROLE) ??
    failure("unknown")
  );
}

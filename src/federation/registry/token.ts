/** Tokens for other swarms: references to environment variables, resolved when they are used. */
import { ownValue } from "../../mail/record.js";

export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/** The variable that a reference names; nothing if the text is a token itself. */
export function variableIn(text: string): string | undefined {
  return REFERENCE.exec(text)?.[1];
}

/** Where the token of a kept swarm is looked for when it was given literally: `${SWARM_AUTH_TOKEN_<NAME>}`. */
export function defaultReference(swarm: string): string {
  const name = swarm.toUpperCase().replaceAll(/[^A-Z0-9_]/g, "_");
  return `\${SWARM_AUTH_TOKEN_${name}}`;
}

export type TokenState =
  /** A token is at hand. */
  | { readonly kind: "ready"; readonly token: string }
  /** The variable is not set: `needs token`. */
  | { readonly kind: "unset"; readonly variable: string }
  /** None was ever given. */
  | { readonly kind: "none" };

export function resolveToken(
  reference: string | null,
  literal: string | undefined,
  env: Environment,
): TokenState {
  if (literal !== undefined) return { kind: "ready", token: literal };
  const variable = reference === null ? undefined : variableIn(reference);
  if (variable === undefined) return { kind: "none" };
  const token = ownValue(env, variable);
  return token === undefined || token === "" ? { kind: "unset", variable } : { kind: "ready", token };
}

/** Tokens for other swarms: references to environment variables, resolved on use. */
import { ownValue } from "../../base/index.js";

export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/** Returns the variable that a reference names, or undefined if the text is a literal token. */
export function variableIn(text: string): string | undefined {
  return REFERENCE.exec(text)?.[1];
}

/** The reference stored for a persistent swarm whose token was given literally: `${SWARM_AUTH_TOKEN_<NAME>}`. */
export function defaultReference(swarm: string): string {
  const name = swarm.toUpperCase().replaceAll(/[^A-Z0-9_]/g, "_");
  return `\${SWARM_AUTH_TOKEN_${name}}`;
}

export type TokenState =
  /** The token is available. */
  | { readonly kind: "ready"; readonly token: string }
  /** The variable is not set; shown as `needs token`. */
  | { readonly kind: "unset"; readonly variable: string }
  /** The swarm was registered without a token. */
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

/** Which claims of a JWT identify its bearer; issuers differ. */
import { roleOf } from "../principal.js";
import { ROLES, type Role } from "../roles.js";

export interface ClaimMapping {
  /** The claim with the role, or with a list of roles: a name, or a path with dots. */
  readonly roleClaim: string;
  readonly idClaim: string;
  /** The issuer's names for Mailroom's roles, such as `{ "ops-team": "admin" }`. Mailroom's own names always work. */
  readonly roles: Readonly<Record<string, Role>>;
}

/** The bearer by the claims; `role` is undefined when they name no known role. */
export function readClaims(
  claims: Readonly<Record<string, unknown>>,
  { roleClaim, idClaim, roles }: ClaimMapping,
): { readonly role: Role | undefined; readonly id: string | undefined } {
  const id = claimAt(claims, idClaim);
  return {
    role: strongest(claimAt(claims, roleClaim), roles),
    id: typeof id === "string" ? id : typeof id === "number" ? String(id) : undefined,
  };
}

/** A claim's name may contain dots (`https://example.com/role`), so the whole name is tried first. */
function claimAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: unknown = claims;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Object.getOwnPropertyDescriptor(value, name)?.value;
  }
  return value;
}

function strongest(claimed: unknown, roles: Readonly<Record<string, Role>>): Role | undefined {
  const words: readonly unknown[] = Array.isArray(claimed) ? claimed : [claimed];
  const held = words.map((word) =>
    typeof word === "string" && Object.hasOwn(roles, word) ? roles[word] : roleOf(word),
  );
  return ROLES.find((role) => held.includes(role));
}

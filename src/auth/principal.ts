/** The authenticated caller and its instance. */
import type { InstanceId } from "../engine/index.js";
import { checkAgentName, checkSwarmName } from "../mail/index.js";
import { ROLES, type Role } from "./roles.js";

/** The provider that authenticated the caller. */
export type Provider = "token" | "service" | "jwt" | "dev";

/** Contains no credential, so it may be logged. */
export interface Principal {
  readonly role: Role;
  readonly id: string;
  readonly provider: Provider;
  /** The id (not the text) of the token, if Mailroom issued it. */
  readonly tokenId?: string;
  /** When the credential expires, in milliseconds, if the provider says so. */
  readonly expiresAt?: number;
}

/** Instances of mesh peers (decision G2). A token with such an id would impersonate the peer. */
const MESH_PREFIX = "mesh/";
const LONGEST_ID = 256;

export function roleOf(text: unknown): Role | undefined {
  return ROLES.find((role) => role === text);
}

/** Why the id is invalid; `undefined` for a valid one. Applies to every provider. */
export function checkPrincipalId(role: Role, id: string): string | undefined {
  if (id === "") return "an id must not be empty";
  if (id.length > LONGEST_ID) return `an id has at most ${LONGEST_ID} characters`;
  if (/\p{Cc}/u.test(id)) return "an id must not contain control characters";
  if (id.trim() !== id) return "an id must not begin or end with white space";
  if (id.startsWith(MESH_PREFIX)) return `ids beginning with "${MESH_PREFIX}" belong to peers in the mesh`;
  switch (role) {
    case "agent":
      return checkSwarmName(id);
    case "member":
      return checkAgentName(id);
    case "admin":
    case "user":
      return undefined;
    default:
      return role satisfies never;
  }
}

/**
 * The instance whose tasks are the caller's. MAIL: a remote swarm is an instance of role `swarm`. A member serves an
 * agent and owns nothing, so it has none.
 */
export function instanceOf({ role, id }: Pick<Principal, "role" | "id">): InstanceId | undefined {
  switch (role) {
    case "admin":
    case "user":
      return { role, id };
    case "agent":
      return { role: "swarm", id };
    case "member":
      return undefined;
    default:
      return role satisfies never;
  }
}

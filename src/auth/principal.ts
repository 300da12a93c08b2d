/** Who is calling, once that is known, and what follows from it. */
import type { InstanceId } from "../engine/ports.js";
import { checkAgentName, checkSwarmName } from "../mail/address.js";

/**
 * `agent` is another swarm, by the name of that swarm; `member` serves one agent of ours, by the name of that agent
 * (decisions A5). In order of power: the first of several that a caller has is the one that counts.
 */
export const ROLES = ["admin", "user", "agent", "member"] as const;
export type Role = (typeof ROLES)[number];

/** Which provider vouches for the caller. */
export type Provider = "token" | "service" | "jwt" | "dev";

/** Holds no credential, so it may be logged. */
export interface Principal {
  readonly role: Role;
  readonly id: string;
  readonly provider: Provider;
  /** The id (not the text) of the token that was shown, where Mailroom issued it. */
  readonly tokenId?: string;
}

/** Decisions G2: instances of peers in the mesh. Whoever could be given such an id would be taken for the peer. */
const MESH_PREFIX = "mesh/";
const LONGEST_ID = 256;

export function roleOf(text: unknown): Role | undefined {
  return ROLES.find((role) => role === text);
}

/** Why nobody can be called this; `undefined` if somebody can. Holds for every provider. */
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

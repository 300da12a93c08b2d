/** Invitations: secrets that let their holder register an id that was invited before it had an owner. */
import { createHash, randomBytes } from "node:crypto";
import type { Reservation } from "../rules/entries.js";

export interface Invitations {
  readonly reservations: ReadonlyMap<string, Reservation>;
  /** The secrets by id, for the inviter. */
  readonly secrets: ReadonlyMap<string, string>;
}

/** One invitation for each id without an owner. None by anonymous callers, whose ids any caller can take. */
export function newInvitations(principal: string | undefined, ids: readonly string[]): Invitations {
  if (principal === undefined) return { reservations: new Map(), secrets: new Map() };
  const secrets = new Map(ids.map((id) => [id, `invitation_${randomBytes(24).toString("base64url")}`]));
  const reservations = new Map<string, Reservation>();
  for (const [id, secret] of secrets)
    reservations.set(id, { id, principal, invitation: invitationHash(secret) });
  return { reservations, secrets };
}

/** Only the hash is stored (decision C7). */
export function invitationHash(invitation: string): string {
  return createHash("sha256").update(invitation).digest("hex");
}

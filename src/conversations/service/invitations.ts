/** Invitations: secrets that let their holder register an id that was invited before it had an owner. */
import { createHash, randomBytes } from "node:crypto";
import type { ReservationPlan } from "../rules/conversation.js";
import type { Reservation } from "../rules/entries.js";

export interface Invitations {
  readonly reservations: ReservationPlan;
  /** The secrets by id, for the inviter. */
  readonly secrets: ReadonlyMap<string, string>;
}

/** By anonymous callers, whose ids any caller can take. */
export const NO_INVITATIONS: Invitations = {
  reservations: { own: new Map(), foreign: new Set() },
  secrets: new Map(),
};

/** One invitation for each id without an owner. Other callers have reserved the `foreign` ids. */
export function newInvitations(
  principal: string,
  ids: readonly string[],
  foreign: ReadonlySet<string>,
): Invitations {
  const secrets = new Map(ids.map((id) => [id, `invitation_${randomBytes(24).toString("base64url")}`]));
  const own = new Map<string, Reservation>();
  for (const [id, secret] of secrets) own.set(id, { id, principal, invitation: invitationHash(secret) });
  return { reservations: { own, foreign }, secrets };
}

/** Only the hash is stored (decision C7). */
export function invitationHash(invitation: string): string {
  return createHash("sha256").update(invitation).digest("hex");
}

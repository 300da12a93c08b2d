import type { MapContext } from "./context.js";
import { partyOf, type Session } from "./session.js";

/**
 * Makes room for something that the caller registers: its oldest disconnected sessions end first, because the caller has
 * probably come back without resuming them.
 * @throws MapError QUOTA_EXCEEDED
 */
export function makeRoom(
  { registrations, sessions }: Pick<MapContext, "registrations" | "sessions">,
  session: Session,
  value: unknown,
  replaced?: object,
): void {
  const party = partyOf(session);
  while (!registrations.fits(party, value, replaced) && sessions.endOldestLost(session));
  registrations.assertFits(party, value, replaced);
}

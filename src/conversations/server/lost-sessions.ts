/** Sessions that wait to be taken up again: so many for each principal, that coming and going fills no memory. */
import type { MapLimits } from "./limits.js";
import { principalKey, type Session } from "./session.js";

export class LostSessions {
  readonly #limits: Pick<MapLimits, "maxLostSessions" | "maxConnections">;
  /** By principal, longest lost first. */
  readonly #lost = new Map<string | undefined, Set<Session>>();

  constructor(limits: Pick<MapLimits, "maxLostSessions" | "maxConnections">) {
    this.#limits = limits;
  }

  /** Returns one that is too many, if there is one: that which was lost first. */
  add(session: Session): Session | undefined {
    const key = principalKey(session.principal);
    const sessions = this.#lost.get(key) ?? new Set();
    this.#lost.set(key, sessions);
    sessions.delete(session);
    sessions.add(session);
    // Those whom nobody knows are not one and the same: as many of them may be away as can be here.
    const { maxLostSessions, maxConnections } = this.#limits;
    const [first] = sessions;
    return sessions.size > (key === undefined ? maxConnections : maxLostSessions) ? first : undefined;
  }

  remove(session: Session): void {
    const key = principalKey(session.principal);
    const sessions = this.#lost.get(key);
    sessions?.delete(session);
    if (sessions?.size === 0) this.#lost.delete(key);
  }
}

/**
 * Disconnected sessions that can be resumed. Limited per principal, so that reconnecting clients cannot
 * exhaust memory.
 */
import { principalKey, type Session } from "./session.js";
import type { MapLimits } from "./settings.js";

export class DisconnectedSessions {
  readonly #limits: Pick<MapLimits, "maxLostSessions" | "maxConnections">;
  /** By principal, in the order of disconnection. */
  readonly #lost = new Map<string | undefined, Set<Session>>();

  constructor(limits: Pick<MapLimits, "maxLostSessions" | "maxConnections">) {
    this.#limits = limits;
  }

  /** Returns the oldest session if there are now too many. */
  add(session: Session): Session | undefined {
    const key = principalKey(session.principal);
    const sessions = this.#lost.get(key) ?? new Set();
    this.#lost.set(key, sessions);
    sessions.delete(session);
    sessions.add(session);
    // Anonymous sessions belong to different clients: allow as many as there can be connections.
    const { maxLostSessions, maxConnections } = this.#limits;
    const [first] = sessions;
    return sessions.size > (key === undefined ? maxConnections : maxLostSessions) ? first : undefined;
  }

  /** The first of the same principal's to be disconnected. Anonymous sessions belong to different clients. */
  oldestOf({ principal }: Session): Session | undefined {
    const [first] = (principal === undefined ? undefined : this.#lost.get(principalKey(principal))) ?? [];
    return first;
  }

  remove(session: Session): void {
    const key = principalKey(session.principal);
    const sessions = this.#lost.get(key);
    sessions?.delete(session);
    if (sessions?.size === 0) this.#lost.delete(key);
  }
}

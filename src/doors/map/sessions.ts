/** Sessions: connected, recently disconnected, and resumed (REF-27). */
import { createHash, randomBytes } from "node:crypto";
import type { Principal } from "../../auth/index.js";
import type { Clock } from "../../base/index.js";
import {
  type ConversationReads,
  type ConversationRowWrite,
  invitationHash,
  type SessionRow,
} from "../../conversations/index.js";
import type { Store } from "../../engine/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { Access } from "./access.js";
import { type ConnectedAgents, type StoredAgent, storedAgent } from "./connected-agents.js";
import { DisconnectedSessions } from "./disconnected-sessions.js";
import { type ConnectedType, PARTICIPANT_TYPES, principalKey, Session } from "./session.js";
import type { MapLimits } from "./settings.js";
import type { Subscriptions } from "./subscriptions.js";

/** The stored form of a session. */
interface StoredSession {
  readonly participantId: string;
  readonly participantType: ConnectedType;
  readonly space: string;
  readonly createdAt: number;
  readonly name?: string;
  /** Written by earlier builds; now each agent has a row. */
  readonly agents?: readonly StoredAgent[];
}

export interface SessionsParts {
  readonly store: Store;
  readonly index: ConversationReads;
  readonly clock: Clock;
  readonly limits: MapLimits;
  readonly report: (error: unknown) => void;
  readonly access: Access;
  readonly agents: ConnectedAgents;
  readonly subscriptions: Subscriptions;
  /** The session has ended and cannot be resumed. */
  readonly onEnded: (session: Session) => void;
  /** Another connection has resumed the session; frames sent to the old one may be lost. */
  readonly onReplaced: (session: Session) => void;
}

export interface ClaimOptions {
  /** For an agent of the swarm: the id passes to its member token. */
  readonly takesOver?: boolean;
  /** The id must belong to the principal already. */
  readonly existing?: boolean;
  readonly invitation?: string;
}

export class Sessions {
  readonly #parts: SessionsParts;
  readonly #sessions = new Map<string, Session>();
  readonly #lost: DisconnectedSessions;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#lost = new DisconnectedSessions(parts.limits);
  }

  /** Marks sessions of an earlier process as disconnected. To be called before the first connection. */
  async sweep(): Promise<void> {
    const now = this.#parts.clock.now();
    const lostBefore = now - this.#parts.limits.resumeWindow;
    await this.#parts.store.commit({
      appends: [],
      rows: write({ kind: "map_session.sweep", now, lostBefore }),
    });
  }

  all(): Iterable<Session> {
    return this.#sessions.values();
  }

  *inSpace(space: string): Generator<Session, void, undefined> {
    for (const session of this.#sessions.values()) if (session.space === space) yield session;
  }

  byParticipant(space: string, participantId: string): Session | undefined {
    for (const session of this.inSpace(space)) if (session.participantId === participantId) return session;
    return undefined;
  }

  byId(space: string, id: string): Session | undefined {
    const session = this.#sessions.get(id);
    return session?.space === space ? session : undefined;
  }

  /** Stores and adds the session. Returns the token that resumes it. */
  async open(session: Session): Promise<string> {
    const token = await this.#renew(session);
    this.#sessions.set(session.id, session);
    return token;
  }

  /** Returns a new resume token; the previous one becomes invalid. */
  renew(session: Session): Promise<string> {
    return this.#renew(session);
  }

  /** Stores the changed session. */
  async save(session: Session): Promise<void> {
    const { tokenHash } = session;
    if (await this.#update(session)) return;
    // Its token was replaced meanwhile, or it has ended.
    if (session.tokenHash !== tokenHash) await this.#update(session);
  }

  /**
   * Resumes a session. Returns nothing for a token that is unknown, used, expired, or another principal's: the caller
   * then gets a new session, not an error (REF-27).
   */
  async resume(
    token: string,
    principal: Principal | undefined,
    grantOf: (type: ConnectedType) => ConstructorParameters<typeof Session>[1],
  ): Promise<{ session: Session; token: string } | undefined> {
    const { clock, limits, index } = this.#parts;
    const tokenHash = hashOf(token);
    const row = await index.sessionByToken(tokenHash);
    if (row === undefined || row.principal !== principalKey(principal)) return undefined;
    if (row.lostAt !== undefined && row.lostAt + limits.resumeWindow < clock.now()) return undefined;
    const known = this.#sessions.get(row.id);
    const session = known ?? this.#revive(row, principal, grantOf);
    if (session === undefined) return undefined;
    const next = newToken();
    try {
      await this.#commit(session, {
        kind: "map_session.put",
        row: this.#row(session, hashOf(next)),
        replaces: tokenHash,
      });
    } catch (error) {
      if (error instanceof RowConflictError) return undefined;
      throw error;
    }
    session.tokenHash = hashOf(next);
    session.cancelExpiry?.();
    session.cancelExpiry = undefined;
    this.#lost.remove(session);
    // The old connection may be dead without having been closed.
    const old = session.connection;
    session.connection = undefined;
    if (old !== undefined) {
      this.#parts.onReplaced(session);
      this.#parts.subscriptions.suspendAll(session);
      old.session = undefined;
      old.close(1000, "the session was resumed by another connection");
    }
    this.#sessions.set(session.id, session);
    return { session, token: next };
  }

  /** The connection is closed; the session can be resumed for a while. */
  disconnect(session: Session): void {
    const { clock, limits, report } = this.#parts;
    session.connection = undefined;
    this.#parts.subscriptions.suspendAll(session);
    session.cancelExpiry?.();
    session.cancelExpiry = clock.after(limits.resumeWindow, () => this.end(session));
    const tooMany = this.#lost.add(session);
    if (tooMany !== undefined) this.end(tooMany);
    this.#update(session, clock.now()).catch(report);
  }

  /** Ends the caller's oldest disconnected session, to make room for its other sessions. False without one. */
  endOldestLost(party: Session): boolean {
    const oldest = this.#lost.oldestOf(party);
    if (oldest === undefined) return false;
    this.end(oldest);
    return true;
  }

  /** The session has ended. */
  end(session: Session): void {
    if (this.#sessions.get(session.id) !== session) return;
    this.#sessions.delete(session.id);
    this.#lost.remove(session);
    this.#parts.subscriptions.endAll(session);
    session.cancelExpiry?.();
    const { store, report } = this.#parts;
    this.#parts.onEnded(session);
    const rows = write({ kind: "map_session.remove", id: session.id });
    store.commit({ appends: [], rows }, "result").catch(report);
  }

  /**
   * Assigns an agent's id to the session's principal permanently, because membership of conversations is
   * durable. False if the id belongs to another principal, or is reserved for an invitation. Anonymous sessions
   * get only ids without an owner, and own nothing.
   */
  async claimAgent({ space, principal }: Session, id: string, how: ClaimOptions = {}): Promise<boolean> {
    const owner = principalKey(principal);
    if (owner === undefined) return !(await this.isOwned(space, id));
    const { invitation, ...rest } = how;
    const rows = write({
      kind: "map_agent.claim",
      space,
      id,
      principal: owner,
      ...rest,
      ...(invitation !== undefined && { invitation: invitationHash(invitation) }),
    });
    try {
      await this.#parts.store.commit({ appends: [], rows });
    } catch (error) {
      if (error instanceof RowConflictError) return false;
      throw error;
    }
    return true;
  }

  /** Whether an id belongs to a principal or is reserved by one. */
  async isOwned(space: string, id: string): Promise<boolean> {
    return (await this.#parts.index.owners(space, [id])).has(id);
  }

  close(): void {
    for (const session of this.#sessions.values()) {
      session.cancelExpiry?.();
      session.cancelGrace?.();
    }
  }

  async #renew(session: Session): Promise<string> {
    const token = newToken();
    const row = this.#row(session, hashOf(token));
    await this.#commit(session, { kind: "map_session.put", row });
    session.tokenHash = hashOf(token);
    return token;
  }

  /** False, without writing, if the token was replaced meanwhile: that must not be reverted. */
  async #update(session: Session, lostAt?: number): Promise<boolean> {
    const { tokenHash } = session;
    const row = this.#row(session, tokenHash, lostAt);
    try {
      // A disconnection is a fact: write it even when the store accepts no new work.
      const kind = lostAt === undefined ? "post" : "result";
      await this.#commit(session, { kind: "map_session.put", row, replaces: tokenHash }, kind);
    } catch (error) {
      if (error instanceof RowConflictError) return false;
      throw error;
    }
    return true;
  }

  /** Writes the session's row, and the rows of those agents that have changed. */
  async #commit(
    session: Session,
    put: ConversationRowWrite,
    kind: "post" | "result" = "post",
  ): Promise<void> {
    const changed = [...session.unsaved];
    session.unsaved.clear();
    const rows = changed.map((id): ConversationRowWrite => {
      const agent = session.agents.has(id) ? this.#parts.agents.find(session.space, id) : undefined;
      const data = agent === undefined ? undefined : JSON.stringify(storedAgent(agent));
      return { kind: "map_session.agent", session: session.id, id, ...(data !== undefined && { data }) };
    });
    try {
      await this.#parts.store.commit({ appends: [], rows: [put, ...rows] }, kind);
    } catch (error) {
      for (const id of changed) session.unsaved.add(id);
      throw error;
    }
  }

  #row(session: Session, tokenHash: string, lostAt?: number): SessionRow {
    const { participantId, participantType, space, createdAt, name } = session;
    const data: StoredSession = {
      participantId,
      participantType,
      space,
      createdAt,
      ...(name !== undefined && { name }),
    };
    const principal = principalKey(session.principal);
    return {
      id: session.id,
      tokenHash,
      data: JSON.stringify(data),
      ...(principal !== undefined && { principal }),
      ...(lostAt !== undefined && { lostAt }),
    };
  }

  /** Restores a session of an earlier process with its agents, except ids that are taken by now. */
  #revive(
    row: SessionRow,
    principal: Principal | undefined,
    grantOf: (type: ConnectedType) => ConstructorParameters<typeof Session>[1],
  ): Session | undefined {
    const stored: StoredSession = JSON.parse(row.data);
    const type = PARTICIPANT_TYPES.find((known) => known === stored.participantType) ?? "client";
    const session = new Session(
      {
        id: row.id,
        participantId: stored.participantId,
        participantType: type,
        space: stored.space,
        createdAt: stored.createdAt,
        ...(stored.name !== undefined && { name: stored.name }),
        ...(principal !== undefined && { principal }),
      },
      grantOf(type),
    );
    const agents = [
      ...(stored.agents ?? []),
      ...(row.agents ?? []).map((data): StoredAgent => JSON.parse(data)),
    ];
    for (const agent of agents) {
      // Stored again, or no longer.
      session.unsaved.add(agent.id);
      if (this.#parts.agents.find(stored.space, agent.id) !== undefined) continue;
      // The name may belong to an agent of the swarm by now.
      if (!this.#parts.access.canUseId(principal, agent.id)) continue;
      this.#parts.agents.add({ ...agent, space: stored.space, session, scopes: new Set() });
      session.addAgent(agent.id);
    }
    return session;
  }
}

/** Types the row, because the store accepts any kind. */
function write(row: ConversationRowWrite): readonly ConversationRowWrite[] {
  return [row];
}

function newToken(): string {
  return `resume_${randomBytes(24).toString("base64url")}`;
}

/** The token itself is never stored (decision C7). */
function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

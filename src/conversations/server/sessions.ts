/** Sessions: who is here, who was a moment ago, and how somebody takes up where they were (map-mail 1.5). */
import { createHash, randomBytes } from "node:crypto";
import type { Principal } from "../../auth/principal.js";
import { RowConflictError } from "../../engine/ports.js";
import type { ConversationRowWrite, SessionRow } from "../ports.js";
import type { Agent } from "./agents.js";
import { LostSessions } from "./lost-sessions.js";
import type { MapServer } from "./map-server.js";
import { type ConnectedType, PARTICIPANT_TYPES, principalKey, Session } from "./session.js";

/** What outlives the process. */
interface StoredSession {
  readonly participantId: string;
  readonly participantType: ConnectedType;
  readonly space: string;
  readonly createdAt: number;
  readonly name?: string;
  readonly agents: readonly StoredAgent[];
}

interface StoredAgent
  extends Pick<Agent, "id" | "state" | "visibility" | "extras" | "metadata" | "createdAt"> {
  readonly name?: string;
  readonly description?: string;
  readonly role?: string;
  readonly parent?: string;
}

export class Sessions {
  readonly #server: MapServer;
  readonly #sessions = new Map<string, Session>();
  readonly #lost: LostSessions;

  constructor(server: MapServer) {
    this.#server = server;
    this.#lost = new LostSessions(server.limits);
  }

  /** Sessions of an earlier process lost their connections with it. To be called before the first connection. */
  async sweep(): Promise<void> {
    const now = this.#server.clock.now();
    const lostBefore = now - this.#server.limits.resumeWindow;
    await this.#server.store.commit({
      appends: [],
      rows: write({ kind: "map_session.sweep", now, lostBefore }),
    });
  }

  *inSpace(space: string): Generator<Session, void, undefined> {
    for (const session of this.#sessions.values()) if (session.space === space) yield session;
  }

  byParticipant(space: string, participantId: string): Session | undefined {
    for (const session of this.inSpace(space)) if (session.participantId === participantId) return session;
    return undefined;
  }

  /** Makes the session durable and known. Returns the token that takes it up again. */
  async open(session: Session): Promise<string> {
    const token = await this.#renew(session);
    this.#sessions.set(session.id, session);
    return token;
  }

  /** A fresh token for a session that goes on; the one before is worth nothing any more. */
  renew(session: Session): Promise<string> {
    return this.#renew(session);
  }

  /** What changed about the session is to survive a restart. */
  async save(session: Session): Promise<void> {
    const { tokenHash } = session;
    if (await this.#update(session)) return;
    // It got a new token meanwhile, or it is over.
    if (session.tokenHash !== tokenHash) await this.#update(session);
  }

  /**
   * Takes a session up again. Nothing for a token that is unknown, used, too old, or somebody else's: that is no error,
   * but a new session (map-mail 1.5).
   */
  async resume(
    token: string,
    principal: Principal | undefined,
    grantOf: (type: ConnectedType) => ConstructorParameters<typeof Session>[1],
  ): Promise<{ session: Session; token: string } | undefined> {
    const { store, clock, limits, index } = this.#server;
    const tokenHash = hashOf(token);
    const row = await index.sessionByToken(tokenHash);
    if (row === undefined || row.principal !== principalKey(principal)) return undefined;
    if (row.lostAt !== undefined && row.lostAt + limits.resumeWindow < clock.now()) return undefined;
    const known = this.#sessions.get(row.id);
    const session = known ?? this.#revive(row, principal, grantOf);
    if (session === undefined) return undefined;
    const next = newToken();
    try {
      await store.commit({
        appends: [],
        rows: write({ kind: "map_session.put", row: this.#row(session, hashOf(next)), replaces: tokenHash }),
      });
    } catch (error) {
      if (error instanceof RowConflictError) return undefined;
      throw error;
    }
    session.tokenHash = hashOf(next);
    session.cancelExpiry?.();
    session.cancelExpiry = undefined;
    this.#lost.remove(session);
    // The old connection may not know yet that it is dead.
    const old = session.connection;
    session.connection = undefined;
    if (old !== undefined) {
      // What was lent or told went there, and may have reached nobody.
      this.#server.remoteAgents?.left(session);
      this.#endSubscriptions(session);
      old.session = undefined;
      old.close(1000, "the session was taken up by another connection");
    }
    this.#sessions.set(session.id, session);
    return { session, token: next };
  }

  /** The connection is gone; the session waits for a while. */
  lose(session: Session): void {
    const { clock, limits, report } = this.#server;
    session.connection = undefined;
    this.#endSubscriptions(session);
    session.cancelExpiry?.();
    session.cancelExpiry = clock.after(limits.resumeWindow, () => this.end(session));
    const tooMany = this.#lost.add(session);
    if (tooMany !== undefined) this.end(tooMany);
    this.#update(session, clock.now()).catch(report);
  }

  /** The session is over. */
  end(session: Session): void {
    if (this.#sessions.get(session.id) !== session) return;
    this.#sessions.delete(session.id);
    this.#lost.remove(session);
    session.cancelExpiry?.();
    const { store, report } = this.#server;
    this.#server.sessionEnded(session);
    const rows = write({ kind: "map_session.remove", id: session.id });
    store.commit({ appends: [], rows }, "result").catch(report);
  }

  close(): void {
    for (const session of this.#sessions.values()) {
      session.cancelExpiry?.();
      session.cancelGrace?.();
    }
  }

  #endSubscriptions({ subscriptions }: Session): void {
    for (const subscription of subscriptions.values()) {
      subscription.close();
      this.#server.subscriptions.delete(subscription);
    }
    subscriptions.clear();
  }

  async #renew(session: Session): Promise<string> {
    const token = newToken();
    const row = this.#row(session, hashOf(token));
    await this.#server.store.commit({ appends: [], rows: write({ kind: "map_session.put", row }) });
    session.tokenHash = hashOf(token);
    return token;
  }

  /** False, and nothing is written, if its token has been replaced meanwhile: that must not be undone. */
  async #update(session: Session, lostAt?: number): Promise<boolean> {
    const { tokenHash } = session;
    const row = this.#row(session, tokenHash, lostAt);
    try {
      const rows = write({ kind: "map_session.put", row, replaces: tokenHash });
      // That a connection is gone is so, whether or not it can be written now.
      await this.#server.store.commit({ appends: [], rows }, lostAt === undefined ? "post" : "result");
    } catch (error) {
      if (error instanceof RowConflictError) return false;
      throw error;
    }
    return true;
  }

  #row(session: Session, tokenHash: string, lostAt?: number): SessionRow {
    const { participantId, participantType, space, createdAt, name } = session;
    const agents = [...session.agents].flatMap((id) => this.#server.agents.find(space, id) ?? []);
    const data: StoredSession = {
      participantId,
      participantType,
      space,
      createdAt,
      ...(name !== undefined && { name }),
      agents: agents.map(storedAgent),
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

  /** A session of an earlier process, with its agents, unless their ids have been taken since. */
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
    for (const agent of stored.agents) {
      if (this.#server.agents.find(stored.space, agent.id) !== undefined) continue;
      // The name may have become an agent's of the swarm since.
      if (!this.#server.mayUseId(principal, agent.id)) continue;
      this.#server.agents.add({ ...agent, space: stored.space, session, scopes: new Set() });
      session.addAgent(agent.id);
    }
    return session;
  }
}

/** Says what is written, so that the compiler checks it: the store takes any kind of row. */
function write(row: ConversationRowWrite): readonly ConversationRowWrite[] {
  return [row];
}

function storedAgent(agent: Agent): StoredAgent {
  const { id, state, visibility, extras, metadata, createdAt, name, description, role, parent } = agent;
  return {
    id,
    state,
    visibility,
    extras,
    metadata,
    createdAt,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(role !== undefined && { role }),
    ...(parent !== undefined && { parent }),
  };
}

function newToken(): string {
  return `resume_${randomBytes(24).toString("base64url")}`;
}

/** Decisions C7: the token itself is kept nowhere. */
function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

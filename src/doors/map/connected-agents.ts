/** The agents and scopes of current sessions, in memory. Durable facts are in conversations. */
import { MapError } from "../../conversations/index.js";
import type { Registrations } from "./registrations.js";
import { partyOf, principalKey, type Session } from "./session.js";

export interface Agent {
  readonly id: string;
  readonly space: string;
  session: Session;
  state: string;
  name?: string;
  description?: string;
  role?: string;
  parent?: string;
  visibility: string;
  readonly scopes: Set<string>;
  /** Fields that are returned as they were given and have no meaning here. */
  extras: Readonly<Record<string, unknown>>;
  metadata: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
}

export interface Scope {
  readonly id: string;
  readonly space: string;
  readonly owner: string;
  /** The scope ends with this session. */
  readonly session: Session;
  readonly name?: string;
  readonly parent?: string;
  readonly extras: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
  readonly members: Set<string>;
}

/** The stored form of an agent. */
export interface StoredAgent
  extends Pick<Agent, "id" | "state" | "visibility" | "extras" | "metadata" | "createdAt"> {
  readonly name?: string;
  readonly description?: string;
  readonly role?: string;
  readonly parent?: string;
}

const STATES = new Set([
  "registered",
  "active",
  "busy",
  "idle",
  "suspended",
  "stopping",
  "stopped",
  "failed",
  "orphaned",
]);

/** @throws MapError STATE_INVALID */
export function assertAgentState(state: string): void {
  if (STATES.has(state) || /^x-./u.test(state)) return;
  throw new MapError("STATE_INVALID", `${JSON.stringify(state.slice(0, 100))} is not a valid agent state`, {
    states: [...STATES, "x-…"],
  });
}

export class ConnectedAgents {
  readonly #agents = new Map<string, Agent>();
  readonly #scopes = new Map<string, Scope>();
  /** By the key of the parent that they name, registered or not. */
  readonly #children = new Map<string, Set<Agent>>();
  readonly #registrations: Registrations;

  constructor(registrations: Registrations) {
    this.#registrations = registrations;
  }

  find(space: string, id: string): Agent | undefined {
    return this.#agents.get(keyOf(space, id));
  }

  /** @throws MapError AGENT_NOT_FOUND */
  require(space: string, id: string): Agent {
    const agent = this.find(space, id);
    if (agent === undefined) throw new MapError("AGENT_NOT_FOUND", undefined, { agentId: id });
    return agent;
  }

  add(agent: Agent): void {
    const key = keyOf(agent.space, agent.id);
    const replaced = this.#agents.get(key);
    if (replaced !== undefined) this.#forget(replaced);
    this.#agents.set(key, agent);
    if (agent.parent !== undefined) {
      const parent = keyOf(agent.space, agent.parent);
      this.#children.set(parent, (this.#children.get(parent) ?? new Set()).add(agent));
    }
    this.changed(agent);
  }

  /** The agent's fields have changed: they are counted, and stored with the session. */
  changed(agent: Agent): void {
    this.#registrations.charge(agent, partyOf(agent.session), storedAgent(agent));
    agent.session.unsaved.add(agent.id);
  }

  #forget(agent: Agent): void {
    this.#registrations.release(agent);
    if (agent.parent === undefined) return;
    const parent = keyOf(agent.space, agent.parent);
    const children = this.#children.get(parent);
    children?.delete(agent);
    if (children?.size === 0) this.#children.delete(parent);
  }

  remove(agent: Agent): void {
    const key = keyOf(agent.space, agent.id);
    if (this.#agents.get(key) !== agent) return;
    this.#agents.delete(key);
    this.#forget(agent);
    for (const scope of this.#scopes.values())
      if (scope.space === agent.space) scope.members.delete(agent.id);
  }

  *inSpace(space: string): Generator<Agent, void, undefined> {
    for (const agent of this.#agents.values()) if (agent.space === space) yield agent;
  }

  /** Clients may name a parent before it registers. It counts only if both have the same principal. */
  parentOf({ space, parent, session }: Agent): Agent | undefined {
    const found = parent === undefined ? undefined : this.find(space, parent);
    return found !== undefined && isSameParty(found.session, session) ? found : undefined;
  }

  childrenOf(agent: Agent): Agent[] {
    const named = this.#children.get(keyOf(agent.space, agent.id)) ?? [];
    return [...named].filter(({ session }) => isSameParty(session, agent.session));
  }

  findScope(space: string, id: string): Scope | undefined {
    return this.#scopes.get(keyOf(space, id));
  }

  /** @throws MapError SCOPE_NOT_FOUND */
  requireScope(space: string, id: string): Scope {
    const scope = this.findScope(space, id);
    if (scope === undefined) throw new MapError("SCOPE_NOT_FOUND", undefined, { scopeId: id });
    return scope;
  }

  addScope(scope: Scope): void {
    this.#scopes.set(keyOf(scope.space, scope.id), scope);
    this.#registrations.charge(scope, partyOf(scope.session), [scope.id, scope.name, scope.extras]);
  }

  removeScope(scope: Scope): void {
    this.#scopes.delete(keyOf(scope.space, scope.id));
    this.#registrations.release(scope);
    for (const agent of this.inSpace(scope.space)) agent.scopes.delete(scope.id);
  }

  *scopesIn(space: string): Generator<Scope, void, undefined> {
    for (const scope of this.#scopes.values()) if (scope.space === space) yield scope;
  }

  get scopeCount(): number {
    return this.#scopes.size;
  }

  enter(scope: Scope, agent: Agent): void {
    scope.members.add(agent.id);
    agent.scopes.add(scope.id);
  }

  exit(scope: Scope, agent: Agent): void {
    scope.members.delete(agent.id);
    agent.scopes.delete(scope.id);
  }

  agentView(agent: Agent): Readonly<Record<string, unknown>> {
    const { id, session, state, name, description, role, parent, visibility, scopes, extras, metadata } =
      agent;
    const children = this.childrenOf(agent).map((child) => child.id);
    return {
      ...extras,
      id,
      ownerId: state === "orphaned" ? null : session.participantId,
      state,
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(role !== undefined && { role }),
      ...(parent !== undefined && { parent }),
      ...(children.length > 0 && { children }),
      visibility,
      scopes: [...scopes],
      lifecycle: { createdAt: agent.createdAt },
      metadata,
    };
  }
}

export function storedAgent(agent: Agent): StoredAgent {
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

export function scopeView(scope: Scope): Readonly<Record<string, unknown>> {
  const { id, name, parent, extras, createdAt, owner, members } = scope;
  return {
    ...extras,
    id,
    ...(name !== undefined && { name }),
    ...(parent !== undefined && { parent }),
    createdBy: owner,
    createdAt,
    memberCount: members.size,
  };
}

/** Public agents are listed to everyone in the space, others only to their owner (decision F2). */
export function canList(session: Session, agent: Agent): boolean {
  if (agent.space !== session.space) return false;
  return agent.visibility === "public" || agent.session.participantId === session.participantId;
}

function isSameParty(one: Session, other: Session): boolean {
  return principalKey(one.principal) === principalKey(other.principal);
}

function keyOf(space: string, id: string): string {
  return `${space}\n${id}`;
}

/** The agents and scopes that are connected now. They live in memory: what must last is in conversations. */
import { MapError } from "../domain/errors.js";
import { principalKey, type Session } from "./session.js";

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
  /** Fields that are kept and given back, but mean nothing here. */
  extras: Readonly<Record<string, unknown>>;
  metadata: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
}

export interface Scope {
  readonly id: string;
  readonly space: string;
  readonly owner: string;
  /** It lasts as long as this one. */
  readonly session: Session;
  readonly name?: string;
  readonly parent?: string;
  readonly extras: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
  readonly members: Set<string>;
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
  throw new MapError("STATE_INVALID", `${JSON.stringify(state.slice(0, 100))} is not a state of an agent`, {
    states: [...STATES, "x-…"],
  });
}

export class AgentRegistry {
  readonly #agents = new Map<string, Agent>();
  readonly #scopes = new Map<string, Scope>();

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
    this.#agents.set(keyOf(agent.space, agent.id), agent);
  }

  remove(agent: Agent): void {
    const key = keyOf(agent.space, agent.id);
    if (this.#agents.get(key) !== agent) return;
    this.#agents.delete(key);
    for (const scope of this.#scopes.values())
      if (scope.space === agent.space) scope.members.delete(agent.id);
  }

  *inSpace(space: string): Generator<Agent, void, undefined> {
    for (const agent of this.#agents.values()) if (agent.space === space) yield agent;
  }

  /** Parents are named freely, also before they are there: they count if they are of the same principal. */
  parentOf({ space, parent, session }: Agent): Agent | undefined {
    const found = parent === undefined ? undefined : this.find(space, parent);
    return found !== undefined && isSameParty(found.session, session) ? found : undefined;
  }

  childrenOf(agent: Agent): Agent[] {
    return [...this.inSpace(agent.space)].filter(
      ({ parent, session }) => parent === agent.id && isSameParty(session, agent.session),
    );
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
  }

  removeScope(scope: Scope): void {
    this.#scopes.delete(keyOf(scope.space, scope.id));
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

/** Decisions F2: public agents are listed to everybody in the space, others to their owner. */
export function mayList(session: Session, agent: Agent): boolean {
  if (agent.space !== session.space) return false;
  return agent.visibility === "public" || agent.session.participantId === session.participantId;
}

function isSameParty(one: Session, other: Session): boolean {
  return principalKey(one.principal) === principalKey(other.principal);
}

function keyOf(space: string, id: string): string {
  return `${space}\n${id}`;
}

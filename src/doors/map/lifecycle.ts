/** What happens to agents, mail and events when sessions connect, disconnect and end. */

import type { Clock } from "../../base/index.js";
import type { EventLog } from "../../conversations/index.js";
import type { Agent, ConnectedAgents, Scope } from "./connected-agents.js";
import type { MessageRouter } from "./message-router.js";
import type { RemoteAgents } from "./remote-agents/remote-agents.js";
import { principalKey, type Session, type SessionConnection } from "./session.js";

export interface LifecycleParts {
  readonly agents: ConnectedAgents;
  readonly messages: MessageRouter;
  readonly remoteAgents: RemoteAgents | undefined;
  readonly log: EventLog;
  readonly clock: Clock;
}

export class Lifecycle {
  readonly #parts: LifecycleParts;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
  }

  /** The session is served by this connection from now on. */
  attach(session: Session, connection: SessionConnection): void {
    session.connection = connection;
    connection.session = session;
    session.cancelGrace?.();
    session.cancelGrace = undefined;
    this.#parts.messages.sessionReturned(session);
    for (const id of session.agents) {
      const agent = this.#parts.agents.find(session.space, id);
      if (agent === undefined) continue;
      if (agent.state === "orphaned") {
        agent.state = "registered";
        this.#parts.agents.changed(agent);
      }
      this.agentRegistered(agent);
    }
    this.participantEvent("participant_connected", session);
  }

  /** The session has lost its connection. Its agents are treated as its policy says. */
  detach(session: Session): void {
    this.#parts.remoteAgents?.left(session);
    const { agentBehavior, gracePeriodMs } = session.policy;
    const agents = [...session.agents].flatMap((id) => this.#parts.agents.find(session.space, id) ?? []);
    switch (agentBehavior) {
      case "unregister":
        for (const agent of agents) this.removeAgent(agent);
        return;
      case "orphan":
        for (const agent of agents) {
          agent.state = "orphaned";
          this.#parts.agents.changed(agent);
        }
        return;
      case "grace-period":
        if (gracePeriodMs === undefined) return;
        session.cancelGrace?.();
        session.cancelGrace = this.#parts.clock.after(gracePeriodMs, () => {
          for (const agent of agents) if (agent.session === session) this.removeAgent(agent);
        });
        return;
      default:
        agentBehavior satisfies never;
    }
  }

  /** The session has ended: its scopes and agents end with it. */
  ended(session: Session): void {
    const { agents, messages } = this.#parts;
    messages.forget(session);
    session.cancelGrace?.();
    for (const scope of [...agents.scopesIn(session.space)]) {
      if (scope.session !== session) continue;
      agents.removeScope(scope);
      this.scopeEvent("scope_deleted", scope, session.acting);
    }
    for (const id of [...session.agents]) {
      const agent = agents.find(session.space, id);
      if (agent?.session === session) this.removeAgent(agent);
    }
  }

  /** An agent has registered, or its session has returned. */
  agentRegistered(agent: Agent): void {
    this.#parts.remoteAgents?.serve(agent);
  }

  removeAgent(agent: Agent): void {
    this.#parts.agents.remove(agent);
    agent.session.removeAgent(agent.id);
    this.#parts.remoteAgents?.left(agent.session, agent.id);
    this.agentEvent("agent_unregistered", agent);
  }

  agentEvent(type: string, agent: Agent, more: Readonly<Record<string, unknown>> = {}): void {
    const { space, visibility, session } = agent;
    this.#parts.log.emit({
      type,
      source: agent.id,
      ...(agent.role !== undefined && { sourceRole: agent.role }),
      data: { agentId: agent.id, ...more, metadata: agent.metadata },
      isFor: (actor) =>
        actor.space === space && (visibility === "public" || actor.identities.has(session.participantId)),
    });
  }

  scopeEvent(type: string, scope: Scope, source: string, more: Readonly<Record<string, unknown>> = {}): void {
    this.#parts.log.emit({
      type,
      source,
      data: { scopeId: scope.id, ...more },
      isFor: (actor) => actor.space === scope.space,
    });
  }

  participantEvent(type: string, session: Session): void {
    const { participantId, participantType, space, name } = session;
    const principal = principalKey(session.principal);
    this.#parts.log.emit({
      type,
      source: participantId,
      data: { participantId, participantType, ...(name !== undefined && { name }) },
      // Who is connected is for observers; others learn of agents only (decision F2).
      isFor: (actor) =>
        actor.space === space && (principal === undefined || actor.observer || actor.principal === principal),
    });
  }
}

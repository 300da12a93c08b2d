/**
 * A MAP server, whatever its connections are carried by: who is connected, what they may do, and whom to tell. The
 * rules of conversations live in `domain/`, their truth in `book/`.
 */

import type { Principal } from "../../auth/principal.js";
import type { Authenticator } from "../../auth/result.js";
import type { Clock, Ids, Store } from "../../engine/ports.js";
import { Conversations } from "../book/conversations.js";
import { MapError } from "../domain/errors.js";
import type { DomainRules } from "../domain/moment.js";
import type { Summariser } from "../domain/summary.js";
import type { Caller, Identity, MailCapabilities } from "../domain/types.js";
import { EventLog } from "../log/event-log.js";
import type { ConversationIndex } from "../ports.js";
import { TaskBook } from "../tasks/book.js";
import { RemoteAgents } from "../tasks/remote-agents.js";
import type { SwarmSide } from "../tasks/swarm-side.js";
import type { Directory } from "./addresses.js";
import { type Agent, AgentRegistry, type Scope } from "./agents.js";
import { type ConnectionOptions, MapConnection, type Wire } from "./connection.js";
import { DEFAULT_MAP_LIMITS, type MapLimits } from "./limits.js";
import { Messages } from "./messages.js";
import { type Handler, type MethodTable, methodTable } from "./methods.js";
import type { ConnectedType, Session } from "./session.js";
import { Sessions } from "./sessions.js";
import type { Subscription } from "./subscription.js";

export interface MailOptions {
  /** What participants may do at all. Default: everything. */
  readonly capabilities?: Partial<MailCapabilities>;
  readonly rules?: Partial<DomainRules>;
  readonly summariser?: Summariser;
}

export interface MapServerOptions {
  /** Its journals hold the conversations. */
  readonly store: Store;
  readonly index: ConversationIndex;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Without one, everybody is let in and nobody is known. */
  readonly authenticator?: Authenticator;
  /** Whether somebody without a credential is turned away. Default true if there is an authenticator. */
  readonly authRequired?: boolean;
  /** Clients may watch conversations that they are no members of (decisions F3). Default false. */
  readonly dev?: boolean;
  /** Every principal has a space of its own (decisions F2). Default false. */
  readonly isolate?: boolean;
  /** `false` switches mail off: every `mail/*` method answers 10010. */
  readonly mail?: MailOptions | false;
  /** Agents of the swarm: only their member tokens may register under these names. */
  readonly isReserved?: (agentId: string) => boolean;
  readonly limits?: Partial<MapLimits>;
  readonly systemInfo?: { readonly name: string; readonly version: string };
  /** Told of what goes wrong where nobody waits for an answer. */
  readonly report?: (error: unknown) => void;
  /** Methods beyond the protocol's. */
  readonly extensions?: MethodTable;
  /** The swarm beside it: its tasks are conversations, and its remote agents are served here (decisions F4, F5). */
  readonly runtime?: SwarmSide;
}

/** Decisions A5: a member serves its agent. It is in a conversation only if a person has invited the agent. */
const OF_MEMBERS: Partial<MailCapabilities> = {
  canCreate: false,
  canJoin: false,
  canInvite: false,
  canCreateThreads: false,
};

const EVERYTHING: MailCapabilities = {
  canCreate: true,
  canJoin: true,
  canInvite: true,
  canViewHistory: true,
  canCreateThreads: true,
};

/** Ids of participants who authenticated: nobody else may be called so. */
const PRINCIPAL_ID = /^(user|admin|member|agent|swarm):/;

export class MapServer {
  readonly authenticator: Authenticator | undefined;
  readonly authRequired: boolean;
  readonly systemInfo: { readonly name: string; readonly version: string };
  readonly limits: MapLimits;
  readonly store: Store;
  readonly index: ConversationIndex;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: EventLog;
  readonly agents = new AgentRegistry();
  readonly sessions: Sessions;
  readonly messages: Messages;
  readonly methods: ReadonlyMap<string, Handler>;
  /** Absent when mail is switched off. */
  readonly conversations: Conversations | undefined;
  /** Absent without a swarm, or when mail is switched off. */
  readonly tasks: TaskBook | undefined;
  /** Absent without a swarm. */
  readonly remoteAgents: RemoteAgents | undefined;
  readonly mailCapabilities: MailCapabilities;
  readonly report: (error: unknown) => void;
  readonly directory: Directory;
  readonly #options: MapServerOptions;
  /** Of all sessions. */
  readonly subscriptions = new Set<Subscription>();
  readonly #connections = new Set<MapConnection>();
  readonly #unwatchTokens: (() => void) | undefined;
  #unfollow: (() => void) | undefined;
  #closed = false;

  private constructor(options: MapServerOptions) {
    this.#options = options;
    this.authenticator = options.authenticator;
    this.authRequired = options.authRequired ?? options.authenticator !== undefined;
    this.systemInfo = options.systemInfo ?? { name: "mailroom", version: "0" };
    this.limits = { ...DEFAULT_MAP_LIMITS, ...options.limits };
    this.store = options.store;
    this.index = options.index;
    this.clock = options.clock;
    this.ids = options.ids;
    this.report = options.report ?? (() => {});
    this.log = new EventLog({
      store: options.store,
      now: () => options.clock.now(),
      epoch: options.ids.uuid().slice(0, 8),
      ringSize: this.limits.eventRing,
      ringBytes: this.limits.eventRingBytes,
      report: this.report,
    });
    const { mail = {} } = options;
    this.mailCapabilities = { ...EVERYTHING, ...(mail === false ? {} : mail.capabilities) };
    this.tasks = mail === false ? undefined : this.#openTasks(mail);
    this.conversations = mail === false ? undefined : this.#openConversations(mail);
    this.sessions = new Sessions(this);
    this.messages = new Messages(this);
    this.remoteAgents =
      options.runtime === undefined ? undefined : new RemoteAgents(this, options.runtime, this.tasks);
    this.methods = methodTable({ ...this.remoteAgents?.methods, ...options.extensions });
    this.#unwatchTokens = options.authenticator?.onRevoked?.((tokenId) => {
      for (const connection of [...this.#connections]) connection.revoked(tokenId);
    });
    this.directory = { agents: this.agents, sessionsOf: (space) => this.sessions.inSpace(space) };
  }

  static async open(options: MapServerOptions): Promise<MapServer> {
    const server = new MapServer(options);
    await server.sessions.sweep();
    return server;
  }

  /** Takes over a connection; the carrier calls `receive` and `lost`. Nothing if there are too many. */
  connect(wire: Wire, options: ConnectionOptions = {}): MapConnection | undefined {
    if (this.#closed || this.#connections.size >= this.limits.maxConnections) {
      wire.close(1013, this.#closed ? "the server is stopping" : "too many connections");
      return undefined;
    }
    const connection = new MapConnection(this, wire, options);
    this.#connections.add(connection);
    return connection;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#unwatchTokens?.();
    for (const connection of [...this.#connections]) connection.close(1001, "the server is stopping");
    const { mail } = this.#options;
    if (mail !== false) mail?.summariser?.close?.();
    await this.remoteAgents?.close();
    this.sessions.close();
    this.#unfollow?.();
    this.log.close();
    this.conversations?.stop();
  }

  // --- who may what -----------------------------------------------------------------------------------------------

  spaceOf(principal: Principal | undefined): string {
    if (this.#options.isolate !== true || principal === undefined) return "";
    return `${principal.role}:${principal.id}`;
  }

  /** What somebody may do in conversations at most. */
  mailFor(principal: Principal | undefined): MailCapabilities {
    return principal?.role === "member" ? { ...this.mailCapabilities, ...OF_MEMBERS } : this.mailCapabilities;
  }

  /** Decisions F3. */
  mayObserve(principal: Principal | undefined, type: ConnectedType): boolean {
    if (principal?.role === "admin") return true;
    return this.#options.dev === true && type === "client" && principal?.role !== "member";
  }

  /** Whether somebody who is not called so by authentication may be called this. */
  mayUseId(principal: Principal | undefined, id: string): boolean {
    if (principal?.role === "member" && principal.id === id) return true;
    return !PRINCIPAL_ID.test(id) && !this.isReserved(id);
  }

  /** Agents of the swarm (decisions A5). */
  isReserved(id: string): boolean {
    return this.#options.isReserved?.(id) === true || this.#options.runtime?.rules.agents.has(id) === true;
  }

  /** The journal in which the events of one conversation are. */
  async journalOf(conversationId: string | undefined): Promise<string | undefined> {
    if (conversationId === undefined || conversationId === "") return undefined;
    return (await this.tasks?.journalOf(conversationId)) ?? conversationId;
  }

  // --- connections and sessions -----------------------------------------------------------------------------------

  attach(session: Session, connection: MapConnection): void {
    session.connection = connection;
    connection.session = session;
    session.cancelGrace?.();
    session.cancelGrace = undefined;
    this.messages.returned(session);
    for (const id of session.agents) {
      const agent = this.agents.find(session.space, id);
      if (agent === undefined) continue;
      if (agent.state === "orphaned") agent.state = "registered";
      this.agentRegistered(agent);
    }
    this.#participantEvent("participant_connected", session);
  }

  disconnected(connection: MapConnection): void {
    this.#connections.delete(connection);
    const { session } = connection;
    if (session === undefined || session.connection !== connection) return;
    this.remoteAgents?.left(session);
    this.#leaveAgents(session);
    this.sessions.lose(session);
    this.#participantEvent("participant_disconnected", session);
  }

  sessionEnded(session: Session): void {
    this.messages.forget(session);
    session.cancelGrace?.();
    for (const scope of [...this.agents.scopesIn(session.space)]) {
      if (scope.session !== session) continue;
      this.agents.removeScope(scope);
      this.scopeEvent("scope_deleted", scope, session.acting);
    }
    for (const id of [...session.agents]) {
      const agent = this.agents.find(session.space, id);
      if (agent?.session === session) this.removeAgent(agent);
    }
  }

  removeAgent(agent: Agent): void {
    this.agents.remove(agent);
    agent.session.removeAgent(agent.id);
    this.remoteAgents?.left(agent.session, agent.id);
    this.agentEvent("agent_unregistered", agent);
  }

  /** An agent is there, or there again. */
  agentRegistered(agent: Agent): void {
    this.remoteAgents?.serve(agent);
  }

  #leaveAgents(session: Session): void {
    const { agentBehavior, gracePeriodMs } = session.policy;
    const agents = [...session.agents].flatMap((id) => this.agents.find(session.space, id) ?? []);
    switch (agentBehavior) {
      case "unregister":
        for (const agent of agents) this.removeAgent(agent);
        return;
      case "orphan":
        for (const agent of agents) agent.state = "orphaned";
        return;
      case "grace-period":
        if (gracePeriodMs === undefined) return;
        session.cancelGrace?.();
        session.cancelGrace = this.clock.after(gracePeriodMs, () => {
          for (const agent of agents) if (agent.session === session) this.removeAgent(agent);
        });
        return;
      default:
        agentBehavior satisfies never;
    }
  }

  // --- events -----------------------------------------------------------------------------------------------------

  /** Begins to hand events to subscriptions. */
  async follow(): Promise<void> {
    if (this.#unfollow !== undefined) return;
    const unfollow = await this.log.listen((event) => {
      for (const subscription of this.subscriptions) subscription.deliver(event);
    });
    if (this.#unfollow === undefined) this.#unfollow = unfollow;
    else unfollow();
  }

  /** A little while, for those who wait for a slow reader. */
  pause(): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(10, resolve);
    });
  }

  agentEvent(type: string, agent: Agent, more: Readonly<Record<string, unknown>> = {}): void {
    const { space, visibility, session } = agent;
    this.log.emit({
      type,
      source: agent.id,
      ...(agent.role !== undefined && { sourceRole: agent.role }),
      data: { agentId: agent.id, ...more, metadata: agent.metadata },
      isFor: (caller) =>
        caller.space === space && (visibility === "public" || caller.identities.has(session.participantId)),
    });
  }

  scopeEvent(type: string, scope: Scope, source: string, more: Readonly<Record<string, unknown>> = {}): void {
    this.log.emit({
      type,
      source,
      data: { scopeId: scope.id, ...more },
      isFor: (caller) => caller.space === scope.space,
    });
  }

  #participantEvent(type: string, session: Session): void {
    const { participantId, participantType, space, name } = session;
    this.log.emit({
      type,
      source: participantId,
      data: { participantId, participantType, ...(name !== undefined && { name }) },
      isFor: (caller: Caller) => caller.space === space,
    });
  }

  // --- inside -----------------------------------------------------------------------------------------------------

  #openConversations(mail: MailOptions): Conversations {
    const { store, index, clock, ids } = this.#options;
    const { tasks } = this;
    return new Conversations({
      store,
      index,
      clock,
      ids,
      log: this.log,
      report: this.report,
      identify: (id, space) => this.#identify(id, space),
      ...(mail.rules !== undefined && { rules: mail.rules }),
      ...(mail.summariser !== undefined && { summariser: mail.summariser }),
      ...(tasks !== undefined && {
        isElsewhere: (caller, id, turnId) => tasks.mayRefer(caller, id, turnId),
      }),
    });
  }

  #openTasks(mail: MailOptions): TaskBook | undefined {
    const { runtime, store, clock } = this.#options;
    if (runtime === undefined) return undefined;
    const { summariser } = mail;
    const tasks = new TaskBook({ store, runtime, clock, ...(summariser !== undefined && { summariser }) });
    this.log.addSource(tasks.source);
    return tasks;
  }

  /** What is known about the bearer of an id (map-mail 3.2). */
  #identify(id: string, space: string): Identity {
    const agent = this.agents.find(space, id);
    if (agent !== undefined) {
      const { name, role } = agent;
      return {
        type: "agent",
        agentInfo: { agentId: id, ...(name !== undefined && { name }), ...(role !== undefined && { role }) },
      };
    }
    switch (this.sessions.byParticipant(space, id)?.participantType) {
      case "client":
        return { type: "user" };
      case "system":
        return { type: "system" };
      default:
        return { type: /^(user|admin):/.test(id) ? "user" : "agent" };
    }
  }

  /** What is not one of ours is our own mistake: told in the log, not to the caller. */
  toMapError(error: unknown, method: string): MapError {
    if (error instanceof MapError) return error;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    switch (code) {
      case "store_busy":
        return new MapError("EXHAUSTED", "nothing can be stored at the moment; try again later");
      case "stale_append":
        return new MapError("EXHAUSTED", "somebody else was writing at the same time; try again");
      case "closed":
      case "store_closed":
        return new MapError("EXHAUSTED", "the server is stopping");
      default:
    }
    this.report(new Error(`${method} failed`, { cause: error }));
    if (code !== "store_failed") return new MapError("INTERNAL_ERROR");
    return new MapError("INTERNAL_ERROR", "the store has failed: nothing is stored until a restart");
  }
}

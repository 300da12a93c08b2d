/**
 * A MAP server over any transport: builds the parts and holds the connections. `access.ts` decides what
 * callers may do, `methods/` handles requests, and the rules of conversations are in the `conversations`
 * module.
 */
import type { Authenticator } from "../../auth/index.js";
import type { Clock, Ids } from "../../base/index.js";
import { defaultsOf, Semaphore } from "../../base/index.js";
import { FairTurns } from "../../base/node.js";
import {
  type AnswersForOthers,
  type ConversationReads,
  type ConversationRules,
  ConversationService,
  EventLog,
  type MailCapabilities,
  ReadCursors,
  type Summarizer,
  TaskConversations,
} from "../../conversations/index.js";
import type { Store } from "../../engine/index.js";
import { Access, type AccessOptions } from "./access.js";
import { Admission } from "./admission.js";
import { ConnectedAgents } from "./connected-agents.js";
import {
  type ConnectionHandler,
  type ConnectionHost,
  type ConnectionOptions,
  MapConnection,
  type Transport,
} from "./connection.js";
import type { MapContext } from "./context.js";
import { Identities } from "./identities.js";
import { Lifecycle } from "./lifecycle.js";
import { MemoryBudget } from "./memory-budget.js";
import { MessageRouter } from "./message-router.js";
import type { MethodHandler, MethodTable } from "./method-call.js";
import { methodTable } from "./methods.js";
import { Observers } from "./observers.js";
import { Registrations } from "./registrations.js";
import { RemoteAgents, type RuntimePort } from "./remote-agents/remote-agents.js";
import type { Session } from "./session.js";
import { Sessions } from "./sessions.js";
import { type MapLimits, mapSettings } from "./settings.js";
import { Subscriptions } from "./subscriptions.js";

export interface MailOptions {
  /** The most that any participant may do. Default: everything. */
  readonly capabilities?: Partial<MailCapabilities>;
  readonly rules?: Partial<ConversationRules>;
  readonly summarizer?: Summarizer;
}

export interface MapServerOptions extends AccessOptions {
  /** Holds the journals of conversations. */
  readonly store: Store;
  readonly index: ConversationReads;
  readonly clock: Clock;
  readonly ids: Ids;
  /** `false` switches mail off: every `mail/*` method answers 10010. */
  readonly mail?: MailOptions | false;
  /** Agents of the swarm: only their member tokens may register under these names. */
  readonly isReserved?: (agentId: string) => boolean;
  readonly limits?: Partial<MapLimits>;
  readonly systemInfo?: { readonly name: string; readonly version: string };
  /** For failures that no caller is waiting for. */
  readonly report?: (error: unknown) => void;
  /** Methods beyond the protocol's. */
  readonly extensions?: MethodTable;
  /** The local swarm: its tasks are conversations (decision F4), its remote agents are served here (decision F5). */
  readonly runtime?: RuntimePort;
  /** What callers may answer in tasks of other owners. */
  readonly answers?: AnswersForOthers;
}

/** Pages and scans of one caller at once. */
const READS_PER_CALLER = 2;
const HOUR = 3_600_000;

export class MapServer implements ConnectionHost {
  readonly context: MapContext;
  readonly #options: MapServerOptions;
  readonly methods: ReadonlyMap<string, MethodHandler>;
  readonly admission: Admission;
  readonly memory: MemoryBudget;
  readonly turns = new FairTurns();
  readonly reads: Semaphore;
  readonly scans = new Semaphore({ perKey: READS_PER_CALLER });
  readonly #connections = new Set<MapConnection>();
  readonly #unwatchTokens: (() => void) | undefined;
  #closed = false;
  #cancelRetention = (): void => {};

  private constructor(options: MapServerOptions) {
    this.#options = options;
    this.context = createContext(options);
    const { remoteAgents, limits, clock } = this.context;
    this.admission = new Admission(limits, clock);
    this.memory = new MemoryBudget(limits);
    this.reads = new Semaphore({ limit: limits.maxReads, perKey: READS_PER_CALLER });
    this.methods = methodTable({
      remoteAgents: remoteAgents !== undefined,
      extensions: options.extensions,
    });
    this.#unwatchTokens = options.authenticator?.onRevoked?.((tokenId) => {
      for (const connection of [...this.#connections]) connection.revoked(tokenId);
    });
  }

  static async open(options: MapServerOptions): Promise<MapServer> {
    const server = new MapServer(options);
    await server.context.sessions.sweep();
    await server.context.observers.load();
    server.#applyRetention();
    return server;
  }

  /** Serves a connection; the transport calls `receive` and `lost`. Undefined if there are too many. */
  connect(transport: Transport, options: ConnectionOptions = {}): MapConnection | undefined {
    const refusal = this.#closed ? "the server is stopping" : this.admission.refusal(options.address);
    if (refusal !== undefined) {
      transport.close(1013, refusal);
      return undefined;
    }
    const connection = new MapConnection(this, transport, options);
    this.#connections.add(connection);
    this.admission.opened(connection);
    return connection;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#unwatchTokens?.();
    this.#cancelRetention();
    for (const connection of [...this.#connections]) connection.close(1001, "the server is stopping");
    const { mail } = this.#options;
    if (mail !== false) mail?.summarizer?.close?.();
    const { remoteAgents, sessions, messages, subscriptions, log, conversations } = this.context;
    await remoteAgents?.close();
    sessions.close();
    messages.close();
    subscriptions.close();
    log.close();
    conversations?.stop();
  }

  /** At the start, and then every hour. */
  #applyRetention(): void {
    const { conversations, clock, report } = this.context;
    if (conversations === undefined || this.#closed) return;
    conversations
      .applyRetention()
      .catch(report)
      .finally(() => {
        this.#cancelRetention = this.#closed ? () => {} : clock.after(HOUR, () => this.#applyRetention());
      });
  }

  // --- for connections ----------------------------------------------------------------------------------------------

  get limits(): MapLimits {
    return this.context.limits;
  }

  get clock(): Clock {
    return this.context.clock;
  }

  get authenticator(): Authenticator | undefined {
    return this.context.access.authenticator;
  }

  get report(): (error: unknown) => void {
    return this.context.report;
  }

  handlerOf(method: string): ConnectionHandler | undefined {
    const handler = this.methods.get(method);
    if (handler === undefined) return undefined;
    const { context } = this;
    return ({ connection, session, params, afterReply }) =>
      handler({ context, connection, session, params, afterReply });
  }

  requestReceived(session: Session): void {
    this.context.messages.requestReceived(session);
  }

  disconnected(connection: MapConnection): void {
    this.#connections.delete(connection);
    this.admission.closed(connection);
    const { session } = connection;
    if (session === undefined || session.connection !== connection) return;
    const { lifecycle, sessions } = this.context;
    lifecycle.detach(session);
    sessions.disconnect(session);
    lifecycle.participantEvent("participant_disconnected", session);
  }
}

function createContext(options: MapServerOptions): MapContext {
  const { store, index, clock, ids, runtime, answers, mail = {} } = options;
  const { report = () => {}, systemInfo = { name: "mailroom", version: "0" } } = options;
  const limits = { ...defaultsOf(mapSettings).limits, ...options.limits };
  const log = new EventLog({
    store,
    now: () => clock.now(),
    epoch: ids.uuid().slice(0, 8),
    ringSize: limits.eventRing,
    ringBytes: limits.eventRingBytes,
    report,
  });
  const observers = new Observers(store, index);
  const access = new Access({
    ...options,
    capabilities: mail === false ? undefined : mail.capabilities,
    isReserved: (id) => options.isReserved?.(id) === true || runtime?.rules.agents.has(id) === true,
    isObserver: (principal) => observers.has(principal),
  });
  const registrations = new Registrations(limits.maxRegistered);
  const agents = new ConnectedAgents(registrations);
  const subscriptions = new Subscriptions(log, clock, registrations);
  const sessions = new Sessions({
    store,
    index,
    clock,
    limits,
    report,
    access,
    agents,
    subscriptions,
    onEnded: (session) => lifecycle.ended(session),
    onReplaced: (session) => remoteAgents?.left(session),
  });
  const identities = new Identities({
    access,
    agents,
    sessions,
    stored: (space, names) => index.owners(space, names),
  });
  const tasks =
    mail === false || runtime === undefined
      ? undefined
      : new TaskConversations({
          store,
          runtime,
          clock,
          ...summarizerOf(mail),
          ...(answers !== undefined && { answers }),
        });
  if (tasks !== undefined) log.addSource(tasks.source);
  const conversations =
    mail === false
      ? undefined
      : new ConversationService({
          store,
          index,
          clock,
          ids,
          log,
          report,
          identify: (id, space) => identities.identify(id, space),
          owners: (space, ids) => identities.owners(space, ids),
          rules: {
            ...mail.rules,
            joining: mail.rules?.joining ?? (options.dev === true ? "open" : "invite"),
          },
          ...summarizerOf(mail),
          ...(tasks !== undefined && {
            isElsewhere: (actor, id, turnId) => tasks.canRefer(actor, id, turnId),
          }),
        });
  const directory = { agents, sessionsOf: (space: string) => sessions.inSpace(space) };
  const messages = new MessageRouter({ access, directory, conversations, log, clock, ids, limits, report });
  const remoteAgents =
    runtime === undefined
      ? undefined
      : new RemoteAgents({ access, clock, ids, report, swarm: runtime, tasks });
  const lifecycle = new Lifecycle({ agents, messages, remoteAgents, log, clock });
  return {
    limits,
    clock,
    ids,
    report,
    systemInfo,
    access,
    agents,
    sessions,
    registrations,
    messages,
    lifecycle,
    log,
    subscriptions,
    observers,
    readCursors: new ReadCursors(store, index),
    conversations,
    tasks,
    remoteAgents,
  };
}

function summarizerOf({ summarizer }: MailOptions): { readonly summarizer?: Summarizer } {
  return summarizer === undefined ? {} : { summarizer };
}

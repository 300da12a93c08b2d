/**
 * Serves the mesh: one agent (decision G1), its listener for peers (decision G4), and the bridge to the local swarm.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isLoopbackHost, MailroomError, messageOf } from "../../base/index.js";
import type { Action, Runtime } from "../../engine/index.js";
import {
  InboundBridge,
  type InboundOptions,
  type MeshAgent,
  MeshCarrier,
  type MeshStore,
  meshActions,
  type OpenAgentInput,
  openMeshAgent,
  type StoredIdentity,
} from "../../mesh/index.js";
import { createGuard, createHttpClient, type HttpClient } from "../../net/index.js";
import { createBodyMemory } from "./body-memory.js";
import { createMeshHandler } from "./handler.js";
import { type Listener, listen } from "./listener.js";
import type { OperatorRouteOptions } from "./operator-routes.js";
import {
  commandWaker,
  toWakeNotification,
  type WakeNotification,
  WakeTrigger,
  webhookWaker,
} from "./wake.js";

export interface ServedMeshParts extends OpenAgentInput {
  readonly store: MeshStore & InboundOptions["store"];
}

export interface MeshFacts {
  readonly agent_id: string;
  readonly endpoint: string;
  /** Absent without a listener. */
  readonly port?: number;
}

/** The mesh actions for swarm files. They work once `use` has set the agent. */
export class MeshActions {
  #agent: MeshAgent | undefined;
  readonly #http: HttpClient;
  readonly byReference: Readonly<Record<string, Action>>;

  constructor(clock: OpenAgentInput["clock"], githubToken?: string) {
    this.#http = createHttpClient({ clock, guard: createGuard() });
    const actions = meshActions({
      agent: () => {
        if (this.#agent !== undefined) return this.#agent;
        throw new MailroomError(
          "not_initialized",
          "this server is not a mesh agent: run 'mailroom mesh init'",
        );
      },
      github: { http: this.#http, token: () => githubToken },
    });
    this.byReference = Object.fromEntries(actions.map((action) => [`mesh/${action.name}`, action]));
  }

  use(agent: MeshAgent): void {
    this.#agent = agent;
  }

  close(): Promise<void> {
    return this.#http.close();
  }
}

/** One mesh agent in a server. Created before the runtime, because recovered tasks may have mail for its peers. */
export class ServedMesh {
  readonly agent: MeshAgent;
  readonly carrier: MeshCarrier;
  readonly #parts: ServedMeshParts;
  readonly #identity: StoredIdentity;
  readonly #http: HttpClient;
  #bridge: InboundBridge | undefined;
  #listener: Listener | undefined;
  readonly #wakeTriggers: WakeTriggers;
  readonly #unsubscribe: () => void;

  private constructor(parts: ServedMeshParts, identity: StoredIdentity, agent: MeshAgent, http: HttpClient) {
    this.#parts = parts;
    this.#identity = identity;
    this.agent = agent;
    this.#http = http;
    this.carrier = new MeshCarrier(agent, parts.store.mesh);
    this.#wakeTriggers = new WakeTriggers(parts);
    this.#unsubscribe = agent.onMessage((message) => {
      // The agent's own event records need no attention.
      if (message.recipientId !== undefined) this.#wakeTriggers.notify(toWakeNotification(message, agent.id));
    });
  }

  static async open(parts: ServedMeshParts, identity: StoredIdentity): Promise<ServedMesh> {
    const { agent, http } = await openMeshAgent(parts, identity);
    return new ServedMesh(parts, identity, agent, http);
  }

  /** Inbox, outbox, wake and GitHub, for the main listener (decision G4, decision G7). */
  get operatorRoutes(): OperatorRouteOptions {
    const { store, settings } = this.#parts;
    const { wake, github } = settings;
    return {
      agent: this.agent,
      reads: store.mesh,
      ...(wake.secret !== undefined && {
        wake: { secret: wake.secret, invoke: (note) => this.#wakeTriggers.invoke(note) },
      }),
      ...(github.secret !== undefined &&
        github.swarm !== undefined && {
          github: { secret: github.secret, swarm: github.swarm, to: github.to },
        }),
    };
  }

  /** Call it after the runtime has recovered its tasks. */
  async start(runtime: Runtime): Promise<void> {
    const { settings, store } = this.#parts;
    const { bridge, limits } = settings;
    this.carrier.start(runtime);
    if (bridge.enabled) {
      this.#bridge = new InboundBridge({
        agent: this.agent,
        runtime,
        store,
        tasksPerHour: limits.tasksPerHour,
        messagesPerHour: limits.messagesPerHour,
        context: {
          messages: bridge.contextMessages,
          ...(bridge.contextTime > 0 && { minutes: bridge.contextTime / 60_000 }),
        },
        ...(bridge.entrypoint !== undefined && { entrypoint: bridge.entrypoint }),
      });
      await this.#bridge.start();
    }
    // Not awaited: an unreachable master is asked again when an unknown sender writes.
    void this.agent.syncAll();
    await this.#listen();
  }

  /** For the operator, when the server has started. */
  get facts(): MeshFacts {
    const { agentId, endpoint } = this.#identity;
    return { agent_id: agentId, endpoint, ...(this.port !== undefined && { port: this.port }) };
  }

  /** The port of the listener for peers; undefined without a listener. */
  get port(): number | undefined {
    return this.#listener?.port;
  }

  /** Re-reads certificates on SIGHUP (decision D10). */
  renew(): void {
    this.#listener?.renew(this.#certificate());
  }

  /** Stops accepting messages from peers. Call it while the runtime still works. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#listener?.close();
    await this.#bridge?.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.agent.close();
    await this.#wakeTriggers.close();
    await this.#http.close();
  }

  async #listen(): Promise<void> {
    const { settings } = this.#parts;
    if (settings.listen === undefined) return;
    const { host, port } = parseListen(settings.listen);
    if (this.#identity.dev && !isLoopbackHost(host)) {
      throw new MailroomError(
        "bad_host",
        `an agent created with --dev listens on loopback only, not on ${host}`,
      );
    }
    const { connections, connectionsPerAddress, requestsPerAddress, bodyMemory } = settings.limits;
    this.#listener = await listen({
      handle: createMeshHandler(this.agent),
      host,
      port,
      proxies: settings.proxies,
      maxConnections: connections,
      maxConnectionsPerAddress: connectionsPerAddress,
      maxRequestsPerAddress: requestsPerAddress,
      bodyMemory: createBodyMemory(bodyMemory),
      ...this.#certificate(),
    }).catch((cause: unknown) => {
      const why = messageOf(cause);
      throw new MailroomError("mesh_listen", `the mesh cannot listen on ${settings.listen}: ${why}`, {
        cause,
      });
    });
  }

  #certificate(): { readonly cert: string; readonly key: string } {
    const { settings, directory } = this.#parts;
    const dev = this.#identity.dev ? join(directory, "tls") : undefined;
    const cert = settings.cert ?? (dev && join(dev, "dev.pem"));
    const key = settings.key ?? (dev && join(dev, "dev.key"));
    if (cert === undefined || key === undefined) {
      throw new MailroomError("no_certificate", "the mesh listener requires mesh.cert and mesh.key");
    }
    try {
      return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
    } catch (cause) {
      const why = messageOf(cause);
      const remedy = this.#identity.dev ? ": create one with 'mailroom mesh dev-ca'" : "";
      throw new MailroomError(
        "no_certificate",
        `cannot read the certificate of the mesh listener: ${why}${remedy}`,
        {
          cause,
        },
      );
    }
  }
}

/** ASP: Wake Trigger, as configured. */
class WakeTriggers {
  readonly #http: HttpClient;
  readonly #webhook: WakeTrigger | undefined;
  readonly #command: WakeTrigger | undefined;

  constructor({ settings, clock, report }: ServedMeshParts) {
    const { allow, wake } = settings;
    const { url, command, secret = "" } = wake;
    // The operator configured this URL, so loopback is allowed.
    this.#http = createHttpClient({
      clock,
      guard: createGuard({ allow: ["loopback", ...allow] }),
    });
    if (url !== undefined) {
      this.#webhook = new WakeTrigger(webhookWaker({ url, secret, http: this.#http }), report);
    }
    const [program, ...args] = command;
    if (program !== undefined) this.#command = new WakeTrigger(commandWaker([program, ...args]), report);
  }

  notify(note: WakeNotification): void {
    this.#webhook?.wake(note);
    this.#command?.wake(note);
  }

  /**
   * Handles a wake request from outside. Skips the webhook, because two agents could otherwise wake each other
   * endlessly.
   */
  invoke(note: WakeNotification): "invoked" | "already_active" {
    this.#command?.wake(note);
    // Local agents are always awake, so there is nothing to wake.
    return this.#command === undefined ? "already_active" : "invoked";
  }

  async close(): Promise<void> {
    await Promise.all([this.#webhook?.close(), this.#command?.close()]);
    await this.#http.close();
  }
}

/** @throws MailroomError when the text is not `host:port` */
export function parseListen(text: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, digits = ""] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/u.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host !== undefined && digits !== "" && port <= 65_535) return { host, port };
  throw new MailroomError(
    "bad_listen",
    `mesh.listen '${text}' is not host:port, such as 0.0.0.0:8443 or [::]:8443`,
  );
}

/** The mesh of a server: one agent, its listener for peers, and the bridges to the swarm behind it (decisions G). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isLoopback } from "../../config/index.js";
import type { Action } from "../../engine/agent.js";
import type { Runtime } from "../../engine/runtime/index.js";
import type { RawRoute } from "../../http/index.js";
import { systemClock } from "../../library/clock.js";
import {
  BodyMemory,
  commandWaker,
  createLocalHandler,
  createMeshHandler,
  InboundBridge,
  type KeptIdentity,
  type Listener,
  type LocalOptions,
  listen,
  MeshCarrier,
  MeshError,
  type MeshNode,
  meshActions,
  type WakeNote,
  WakeTrigger,
  wakeNoteOf,
  webhookWaker,
} from "../../mesh/index.js";
import { createGuard, createHttpClient, type HttpClient } from "../../net/index.js";
import { CliError, EXIT } from "../exit.js";
import { type MeshParts, openMeshNode } from "./mesh-node.js";
import { localRoutes } from "./mesh-routes.js";

/** The actions of the mesh for swarm files; they come to life with the node. */
export class MeshActions {
  #node: MeshNode | undefined;
  readonly #http = createHttpClient({ clock: systemClock, guard: createGuard() });
  readonly byReference: Readonly<Record<string, Action>>;

  constructor(githubToken?: string) {
    const actions = meshActions({
      node: () => {
        if (this.#node !== undefined) return this.#node;
        throw new MeshError("not_initialised", "this server is no agent of the mesh");
      },
      github: { http: this.#http, token: () => githubToken },
    });
    this.byReference = Object.fromEntries(actions.map((action) => [`mesh/${action.name}`, action]));
  }

  use(node: MeshNode): void {
    this.#node = node;
  }

  close(): Promise<void> {
    return this.#http.close();
  }
}

/** One agent of the mesh in a server. Made before the runtime, because mail that waits there may be for its peers. */
export class ServedMesh {
  readonly node: MeshNode;
  readonly carrier: MeshCarrier;
  readonly #parts: MeshParts;
  readonly #identity: KeptIdentity;
  readonly #http: HttpClient;
  #bridge: InboundBridge | undefined;
  #listener: Listener | undefined;
  readonly #waking: Waking;
  readonly #stopWaking: () => void;

  private constructor(parts: MeshParts, identity: KeptIdentity, node: MeshNode, http: HttpClient) {
    this.#parts = parts;
    this.#identity = identity;
    this.node = node;
    this.#http = http;
    this.carrier = new MeshCarrier(node, parts.store.mesh);
    this.#waking = new Waking(parts);
    this.#stopWaking = node.onMessage((message) => {
      // What we noted ourselves needs nobody's attention.
      if (message.recipientId !== undefined) this.#waking.tell(wakeNoteOf(message, node.id));
    });
  }

  static async open(parts: MeshParts, identity: KeptIdentity): Promise<ServedMesh> {
    const { node, http } = await openMeshNode(parts, identity);
    return new ServedMesh(parts, identity, node, http);
  }

  /** Inbox, outbox, wake and GitHub, for the main listener (decisions G4, G7). */
  routes(): readonly RawRoute[] {
    const { store, settings } = this.#parts;
    const { wake, github } = settings.mesh;
    const options: LocalOptions = {
      node: this.node,
      reads: store.mesh,
      ...(wake.secret !== undefined && {
        wake: { secret: wake.secret, invoke: (note) => this.#waking.invoke(note) },
      }),
      ...(github.secret !== undefined &&
        github.swarm !== undefined && {
          github: { secret: github.secret, swarm: github.swarm, to: github.to },
        }),
    };
    return localRoutes(createLocalHandler(options), (path) => {
      if (path === "/api/wake") return options.wake !== undefined;
      return path !== "/mesh/github" || options.github !== undefined;
    });
  }

  /** To be called when the runtime has taken up its tasks. */
  async start(runtime: Runtime): Promise<void> {
    const { settings, store } = this.#parts;
    const { bridge, limits } = settings.mesh;
    this.carrier.start(runtime);
    if (bridge.enabled) {
      this.#bridge = new InboundBridge({
        node: this.node,
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
    // Nobody waits for it: a master that is away is asked again when somebody unknown writes.
    void this.node.syncAll();
    await this.#listen();
  }

  /** Where peers are served; nothing without a listener. */
  get port(): number | undefined {
    return this.#listener?.port;
  }

  /** Decisions D10: certificates are read again on SIGHUP. */
  renew(): void {
    this.#listener?.renew(this.#certificate());
  }

  /** Takes nothing more from peers. To be called while the runtime still works. */
  async stop(): Promise<void> {
    this.#stopWaking();
    await this.#listener?.close();
    await this.#bridge?.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.node.close();
    await this.#waking.close();
    await this.#http.close();
  }

  async #listen(): Promise<void> {
    const { mesh } = this.#parts.settings;
    if (mesh.listen === undefined) return;
    const { host, port } = parseListen(mesh.listen);
    if (this.#identity.dev && !isLoopback(host)) {
      throw new CliError(
        "bad_host",
        `an agent made with --dev listens on this machine only, not on ${host}`,
        {
          hint: "use localhost, or make the agent without --dev",
        },
      );
    }
    const { connections, connectionsPerAddress, bodyMemory } = mesh.limits;
    this.#listener = await listen({
      handle: createMeshHandler(this.node),
      host,
      port,
      proxies: mesh.proxies,
      maxConnections: connections,
      maxConnectionsPerAddress: connectionsPerAddress,
      // A quarter for each: nobody alone keeps all others out.
      bodyMemory: new BodyMemory({ total: bodyMemory, perCaller: bodyMemory / 4 }),
      ...this.#certificate(),
    }).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new CliError("mesh_listen", `the mesh cannot listen on ${mesh.listen}: ${why}`, { cause });
    });
  }

  #certificate(): { readonly cert: string; readonly key: string } {
    const { settings, data } = this.#parts;
    const dev = this.#identity.dev ? join(data, "tls") : undefined;
    const cert = settings.mesh.cert ?? (dev && join(dev, "dev.pem"));
    const key = settings.mesh.key ?? (dev && join(dev, "dev.key"));
    if (cert === undefined || key === undefined) {
      throw new CliError("no_certificate", "the mesh's listener needs mesh.cert and mesh.key", {
        hint: "name the files of your certificate in mail.toml",
      });
    }
    try {
      return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new CliError("no_certificate", `the certificate of the mesh cannot be read: ${why}`, {
        hint: this.#identity.dev ? "make one with 'mailroom mesh dev-ca'" : "see mesh.cert and mesh.key",
        cause,
      });
    }
  }
}

/** ASP: Wake Trigger, as configured. */
class Waking {
  readonly #http: HttpClient;
  readonly #webhook: WakeTrigger | undefined;
  readonly #command: WakeTrigger | undefined;

  constructor({ settings, report }: MeshParts) {
    const { allow, wake } = settings.mesh;
    const { url, command, secret = "" } = wake;
    // The operator named it, so this machine may be meant.
    this.#http = createHttpClient({
      clock: systemClock,
      guard: createGuard({ allow: ["loopback", ...allow] }),
    });
    if (url !== undefined) {
      this.#webhook = new WakeTrigger(webhookWaker({ url, secret, http: this.#http }), report);
    }
    const [program, ...args] = command;
    if (program !== undefined) this.#command = new WakeTrigger(commandWaker([program, ...args]), report);
  }

  tell(note: WakeNote): void {
    this.#webhook?.wake(note);
    this.#command?.wake(note);
  }

  /** Somebody else says that there is mail. The webhook is left out: two agents could go on telling each other. */
  invoke(note: WakeNote): "invoked" | "already_active" {
    this.#command?.wake(note);
    // The agents of the swarm behind us sleep never.
    return this.#command === undefined ? "already_active" : "invoked";
  }

  async close(): Promise<void> {
    await Promise.all([this.#webhook?.close(), this.#command?.close()]);
    await this.#http.close();
  }
}

/** @throws CliError when it is not `host:port` */
export function parseListen(text: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, digits = ""] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/u.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host !== undefined && digits !== "" && port <= 65_535) return { host, port };
  throw new CliError("usage", `mesh.listen '${text}' is not host:port`, {
    exit: EXIT.usage,
    hint: "for example 0.0.0.0:8443 or [::]:8443",
  });
}

/** The composition root: options in, a server out. Reads no file, flag or environment variable by itself. */
import { join } from "node:path";
import type { Logger } from "pino";
import { createAuthenticator, Tokens } from "../auth/index.js";
import {
  type Clock,
  CloseStack,
  deferred,
  type Ids,
  MailroomError,
  messageOf,
  type Problem,
  type Report,
  systemClock,
} from "../base/index.js";
import { systemIds } from "../base/node.js";
import { createLocalBus } from "../bus/index.js";
import type { Action, Carrier, SwarmDefinition } from "../engine/index.js";
import {
  type AnyExtensionFactory,
  type CreateContext,
  type Extension,
  type NamedExtension,
  NameRegistry,
  type ServerFacts,
  ServerState,
} from "../extension/index.js";
import { createHttpListener, type HttpListener } from "../http/index.js";
import type { Bus } from "../journal/index.js";
import { DefinitionInForce, Mailroom, retentionFrom } from "../library/index.js";
import { type FullStore, openStore } from "../store/index.js";
import { loadModuleExport } from "../swarm/index.js";
import { ControlContext } from "./control/context.js";
import { type Control, openControl } from "./control/server.js";
import { OutboxCarrier } from "./delivery-carrier.js";
import { standardExtensions } from "./extensions.js";
import { createLogger } from "./log.js";
import { type ExtensionSettings, type PartialSettings, resolveSettings } from "./resolve-settings.js";
import { createSecret } from "./secret.js";
import { builtinsWith, modelEnvironment, type SwarmSource } from "./swarm.js";
import { versions } from "./version.js";

/** What `createServer` serves, and how. */
export interface ServerOptions {
  readonly swarm: SwarmDefinition | SwarmSource;
  /** The data directory, or `false` to keep everything in memory. Default: `./.mailroom/<swarm>`. */
  readonly data?: string | false;
  /** Development mode: accepts any `role:id` as a bearer token, and listens on loopback only. Default: false. */
  readonly dev?: boolean;
  /** Settings by module, as in `docs/configuration.md`, in camelCase; times are milliseconds, sizes bytes. Default: the defaults of that page. */
  readonly settings?: PartialSettings & ExtensionSettings;
  /** Default: `standardExtensions`. */
  readonly extensions?: readonly AnyExtensionFactory[];
  /** A store of your own, which the caller closes. Default: SQLite in `data`. */
  readonly store?: FullStore;
  /** A bus of your own, which the caller closes. Default: one within this process. */
  readonly bus?: Bus;
  /** A pino logger. Default: as `settings.log` says, on standard error. */
  readonly logger?: Logger;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Makes the ids of tasks and messages. Default: random UUIDs. */
  readonly ids?: Ids;
  /** Where extensions look up secrets (`${NAME}`) and model keys. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Where a server listens. */
export interface ListenAddress {
  /** Default: `server.host` of the settings. */
  readonly host?: string;
  /** 0 takes a free one. Default: `server.port` of the settings. */
  readonly port?: number;
}

/** A server made by `createServer`. */
export interface MailroomServer {
  readonly mailroom: Mailroom;
  readonly store: FullStore;
  readonly tokens: Tokens;
  /** Absent when everything is kept in memory. */
  readonly dataDirectory: string | undefined;
  /** Resolves when the store has failed for good. The server can only be closed then. */
  readonly failed: Mailroom["failed"];
  /** Facts that extensions report to the operator, such as `{ mesh: { port: 8443 } }`. */
  readonly facts: Readonly<Record<string, unknown>>;
  /**
   * Opens the listener, starts the extensions and recovers tasks in the background. Resolves with the URL. If it fails,
   * everything is closed again.
   * @throws MailroomError `port_in_use`, `port_refused` or `bad_host`; `wrong_state` for a second call, which changes nothing
   */
  listen(address?: ListenAddress): Promise<string>;
  /** The number of unfinished tasks of the last process. Resolves after `listen`, while they are recovered. */
  unfinished(): Promise<number>;
  /** Opens the control socket of the data directory, for `mailroom` commands on this machine. */
  openControl(path: string): Promise<void>;
  /** Puts another definition of the swarm in force. Running tasks continue with it. */
  useSwarm(definition: SwarmDefinition): Promise<void>;
  /** Loads the swarm from its source again, without putting it in force. */
  loadSwarm(): Promise<SwarmDefinition>;
  /** Reads certificates again. Returns what could not be used; the old ones stay then. */
  reload(): Promise<readonly Problem[]>;
  /**
   * Stops accepting requests, drains the extensions, and gives running turns `grace` milliseconds (default 10 s). What
   * does not finish continues at the next start. A second call returns the first promise.
   * @throws MailroomError `store_failed` or `unwritten`
   */
  close(grace?: number): Promise<void>;
}

const DEFAULT_GRACE = 10_000;
/** The longest time that a timer accepts. */
const MAX_GRACE = 2 ** 31 - 1;

/**
 * Serves a swarm over every protocol: MAIL, federation, MAP, mesh, MCP and A2A.
 *
 * @example
 * const server = await createServer({ swarm, dev: true });
 * console.log(await server.listen({ port: 8000 }));
 */
export async function createServer(options: ServerOptions): Promise<MailroomServer> {
  const stack = new CloseStack();
  return closeOnFailure(stack, () => build(options, stack));
}

async function closeOnFailure<T>(stack: CloseStack, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // The reason of the failure matters, not what follows from it.
    await stack.close().catch(() => {});
    throw error;
  }
}

async function build(options: ServerOptions, stack: CloseStack): Promise<MailroomServer> {
  const { clock = systemClock, ids = systemIds } = options;
  const resolved = resolveSettings(options.settings);
  const { settings } = resolved;
  const { server } = settings;
  const dev = options.dev ?? server.dev;
  const log = options.logger ?? createLogger(settings.log);
  const reportFor =
    (extension: string): Report =>
    ({ code, message, task, cause }) =>
      log.warn({ extension, code, ...(task !== undefined && { task }), err: cause }, message);
  const inMemory = settings.store.database === "memory" && options.data === undefined;
  const dataDirectory = inMemory ? undefined : dataDirectoryOf(options, server.data);

  const store = options.store ?? (await openDefaultStore(dataDirectory, settings.store.durability));
  if (options.store === undefined) stack.add(() => store.close());
  const bus =
    options.bus ?? createLocalBus({ onError: (cause) => log.error({ err: cause }, "bus listener failed") });
  if (options.bus === undefined) stack.add(() => bus.close());

  const report = reportFor("auth");
  const tokens = new Tokens({ store, clock, report });
  stack.add(() => tokens.close());
  const authenticator = await createAuthenticator({ ...settings.auth, dev }, { tokens, clock, report });
  const control = new ControlContext();

  const { cert, key } = server.tls;
  const facts: ServerFacts = {
    version: versions().mailroom,
    dev,
    publicUrl: server.publicUrl,
    tls: cert !== undefined,
    strictIds: server.strictIds,
    adminsActForOwners: settings.auth.adminsActForOwners,
    waitTimeout: server.waitTimeout,
  };
  const env = modelEnvironment(settings.models, options.env);
  const secret = createSecret(dataDirectory);
  const names = new NameRegistry(options.swarm.name);
  const extensions: NamedExtension<Extension>[] = [];
  const carriers: Carrier[] = [];
  const outboxes: OutboxCarrier[] = [];
  for (const factory of options.extensions ?? standardExtensions) {
    const { name } = factory;
    const context: CreateContext<never> = {
      settings: resolved.valuesFor(name, factory.settings),
      server: facts,
      swarm: options.swarm.name,
      dataDirectory,
      store,
      clock,
      ids,
      log,
      env,
      authenticator,
      tokens,
      secret,
      names: names.for(name),
      report: reportFor(name),
    };
    const extension = await factory.create(context);
    if (extension === undefined) continue;
    extensions.push({ name, extension });
    stack.add(async () => extension.close?.());
    if (extension.carrier === undefined) continue;
    const carrier = toCarrier(extension.carrier, { name, store, clock, ids, report: reportFor(name) });
    if (carrier instanceof OutboxCarrier) outboxes.push(carrier);
    carriers.push(carrier);
    names.addCarrier(name, (swarm) => carrier.owns(swarm));
  }

  const actions: Readonly<Record<string, Action>> = Object.assign(
    {},
    ...extensions.map(({ extension }) => extension.actions),
  );
  const builtins = builtinsWith(settings, actions, env, ({ code, message, task }) => {
    log.warn({ code, task }, message);
  });
  const loadSwarm = async () => ("load" in options.swarm ? options.swarm.load(builtins) : options.swarm);
  let count: (unfinished: number) => void = () => {};
  const counted = new Promise<number>((resolve) => {
    count = resolve;
  });
  const mailroom = await Mailroom.open({
    swarm: await loadSwarm(),
    store,
    bus,
    clock,
    ids,
    limits: settings.runtime,
    carriers,
    systemActions: extensions.flatMap(({ extension }) => extension.systemActions ?? []),
    retention: retentionFrom(settings.retention),
    recover: false,
    onRecovery: (_recovered, of) => count(of),
    onProblem: ({ code, message, task, cause }) => {
      // `failed` reports it.
      if (code !== "store_failed") log.error({ code, task, err: cause }, message);
    },
  });
  let grace = DEFAULT_GRACE;
  stack.add(async () => {
    await mailroom.close({ grace });
  });

  const definition = new DefinitionInForce({
    mailroom,
    store: store.http,
    loading: { builtins, ...(server.swarm.allowModules && { modules: loadModuleExport }) },
    report: reportFor("swarm"),
  });
  await definition.restore();
  const queues = outboxes.map(({ outbox }) => outbox);
  const state = new ServerState(clock, () => extensions, queues);
  const { runtime } = mailroom;
  let http: HttpListener | undefined;
  stack.add(async () => http?.close());
  // Before `attach`: an extension that fails there must not leave the others running.
  stack.add(async () => {
    http?.stopAccepting();
    const deadline = AbortSignal.timeout(Math.min(grace, MAX_GRACE));
    for (const { name, extension } of extensions.toReversed()) {
      try {
        await within(deadline, extension.drain?.(deadline));
      } catch (cause) {
        reportFor(name)({ code: "close_failed", message: messageOf(cause), cause });
      }
    }
  });
  // An extension delivers only between its start and its drain.
  stack.add(async () => {
    await Promise.all(outboxes.map((outbox) => outbox.stop()));
  });
  for (const { extension } of extensions)
    await extension.attach?.({ mailroom, runtime, bus, definition, state });

  const listener = await createHttpListener({
    mailroom,
    authenticator: control.before(authenticator),
    server: facts,
    state,
    extensions: extensions.map(({ extension }) => extension),
    limits: settings.http,
    storage: {
      durability: dataDirectory === undefined ? "memory" : settings.store.durability,
      retention: settings.retention,
    },
    trustProxy: server.trustProxy,
    logger: log,
    clock,
    ...(server.corsOrigins.length > 0 && { cors: { origins: server.corsOrigins } }),
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
    ...(!server.metrics && { metrics: false }),
  });
  http = listener;
  listener.app.server.maxConnections = server.connections;
  let closing: Promise<void> | undefined;
  let hasListened = false;
  let starting: Promise<unknown> = Promise.resolve();
  const checkOpen = () => {
    if (closing !== undefined) throw new MailroomError("closed", "the server is closed");
  };
  const closeAll = async (): Promise<void> => {
    // The timers inside keep no process alive, and nothing else does: it would end in the middle of this.
    const alive = setInterval(() => {}, 60_000);
    // An extension that is closed in the middle of its start would stay open.
    await starting;
    const [closed] = await Promise.allSettled([stack.close()]);
    clearInterval(alive);
    const { failure, health } = store.writer;
    // The reason why the server ends matters, not what follows from it.
    if (failure !== undefined) throw new MailroomError("store_failed", failure.message, { cause: failure });
    if (closed.status === "rejected") throw closed.reason;
    const { unwritten } = await mailroom.close();
    if (unwritten > 0) throw unwrittenError(unwritten, health.reason);
  };

  return {
    mailroom,
    store,
    tokens,
    dataDirectory,
    failed: mailroom.failed,
    get facts() {
      return Object.assign({}, ...extensions.map(({ extension }) => extension.facts?.()));
    },
    listen({ host = server.host, port = server.port } = {}) {
      if (hasListened) {
        return Promise.reject(new MailroomError("wrong_state", "the server listens already, or did before"));
      }
      hasListened = true;
      const listening = closeOnFailure(stack, async () => {
        checkOpen();
        const url = await listenAt(listener, host, port);
        for (const { extension } of extensions) {
          checkOpen();
          await extension.start?.({ url });
        }
        checkOpen();
        for (const outbox of outboxes) outbox.start(runtime);
        const recovering = mailroom.recover();
        // A failure of the store ends the server and is reported there.
        recovering.catch(() => {});
        recovering.then(count, () => count(0));
        return url;
      });
      starting = listening.catch(() => {});
      return listening;
    },
    unfinished: () => counted,
    async openControl(path) {
      const opened: Control = await openControl({
        path,
        context: control,
        tokens,
        operations: extensions.flatMap(({ extension }) => extension.control ?? []),
        upgrades: extensions.flatMap(({ extension }) => extension.upgrades ?? []),
        app: (request, response) => listener.app.routing(request, response),
      });
      stack.add(() => opened.close());
    },
    useSwarm: (swarm) => definition.use(swarm),
    loadSwarm,
    async reload() {
      const problems: Problem[] = [];
      const reloads = [
        { name: "http", reload: () => listener.reloadTls() },
        ...extensions.map(({ name, extension }) => ({ name, reload: () => extension.reload?.() })),
      ];
      for (const { name, reload } of reloads) {
        try {
          await reload();
        } catch (cause) {
          problems.push({ code: "no_certificate", message: messageOf(cause), extension: name, cause });
        }
      }
      return problems;
    },
    close(wait = DEFAULT_GRACE) {
      grace = wait;
      closing ??= closeAll();
      return closing;
    },
  };
}

function toCarrier(
  carrier: NonNullable<Extension["carrier"]>,
  parts: ConstructorParameters<typeof OutboxCarrier>[1],
): Carrier {
  return "deliver" in carrier ? new OutboxCarrier(carrier, parts) : carrier;
}

function dataDirectoryOf({ data, swarm }: ServerOptions, configured: string | undefined): string | undefined {
  if (data === false) return undefined;
  return data ?? configured ?? join(".mailroom", swarm.name);
}

function openDefaultStore(directory: string | undefined, durability: "fsync" | "fast"): Promise<FullStore> {
  return directory === undefined ? openStore({ path: ":memory:" }) : openStore({ directory, durability });
}

function unwrittenError(unwritten: number, reason: string | undefined): MailroomError {
  const why = reason === undefined ? "" : ` (${reason})`;
  return new MailroomError(
    "unwritten",
    `the store could not be written until the end${why}: ${unwritten} results are lost that no caller has seen`,
  );
}

/** Waits for `work`, but not beyond the deadline. */
async function within(deadline: AbortSignal, work: void | Promise<void>): Promise<void> {
  if (deadline.aborted) return;
  const { promise: late, resolve } = deferred<void>();
  deadline.addEventListener("abort", () => resolve(), { once: true });
  await Promise.race([work, late]);
}

/**
 * Opens the listener, with errors that say what to do.
 * @throws MailroomError `port_in_use`, `port_refused` or `bad_host`
 */
async function listenAt(http: HttpListener, host: string, port: number): Promise<string> {
  try {
    return await http.listen({ host, port });
  } catch (cause) {
    switch (cause instanceof Error && "code" in cause ? cause.code : undefined) {
      case "EADDRINUSE":
        throw new MailroomError("port_in_use", `port ${port} on ${host} is in use by another program`, {
          cause,
        });
      case "EACCES":
        throw new MailroomError("port_refused", `this user may not listen on port ${port}`, { cause });
      case "EADDRNOTAVAIL":
      case "ENOTFOUND":
        throw new MailroomError("bad_host", `'${host}' is not an address of this machine`, { cause });
      default:
        throw cause;
    }
  }
}

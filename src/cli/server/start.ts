/** Puts a server together from its settings: store, swarm, authentication, HTTP, control socket. */

import type { FastifyBaseLogger } from "fastify";
import type { A2aCarrier } from "../../a2a/index.js";
import { type CreatedToken, createAuthenticator, Tokens } from "../../auth/index.js";
import type { Settings } from "../../config/index.js";
import type { MapServer } from "../../conversations/index.js";
import type { Federation } from "../../federation/index.js";
import { createServer, type MailroomServer } from "../../http/index.js";
import { systemClock } from "../../library/clock.js";
import { Mailroom, type MailroomOptions } from "../../library/mailroom.js";
import type { FullStore } from "../../store/index.js";
import { loadModuleExport } from "../../swarm/modules.js";
import { ControlContext } from "../control/context.js";
import { meshControl } from "../control/mesh-api.js";
import { controlPath } from "../control/path.js";
import { type Control, openControl } from "../control/server.js";
import { CliError, EXIT } from "../exit.js";
import { dataDirectoryFor } from "../place.js";
import { versions } from "../version.js";
import { openA2aCarrier, openAgentDoors } from "./agent-doors.js";
import { openFederation } from "./federation.js";
import { httpLimits, retentionOf, runtimeLimits } from "./limits.js";
import { createLogger } from "./log.js";
import { openMap } from "./map.js";
import { MeshActions, ServedMesh } from "./mesh.js";
import { meshIdentity } from "./mesh-node.js";
import { openServerStore } from "./open-store.js";
import { Opened } from "./opened.js";
import { builtinsWith, type ServedSwarm, servedSwarm } from "./swarm.js";

export interface RunningServer {
  readonly url: string;
  readonly mailroom: Mailroom;
  readonly http: MailroomServer;
  readonly swarm: ServedSwarm;
  /** Nothing when everything is kept in memory. */
  readonly data: string | undefined;
  /** Where `mesh init` was run. */
  readonly mesh: ServedMesh | undefined;
  /** Reads the swarm file anew. */
  loadSwarm(): Promise<ServedSwarm>;
  /** Whether commands on this machine can reach it by its data directory. */
  readonly controlled: boolean;
  /** Made at the first start, and shown this once. */
  readonly firstToken: CreatedToken | undefined;
  /** How many running tasks the last process left; they are taken up while everybody is served. */
  readonly unfinished: number;
  /** Resolves when the store has failed for good: there is nothing left to do but to close. */
  readonly failed: Promise<unknown>;
  /**
   * Lets what runs finish for up to `grace` milliseconds; what does not is taken up at the next start.
   * @throws CliError `store_failed` when that is why it ends, `unwritten` when results could not be written
   */
  close(grace?: number): Promise<void>;
}

/** @param say told what the start waits for */
export async function startServer(
  settings: Settings,
  directory: string,
  say: (line: string) => void = () => {},
): Promise<RunningServer> {
  const opened = new Opened();
  try {
    return await start(settings, directory, opened, say);
  } catch (error) {
    // Why it could not start is what matters, not what followed from that.
    await opened.closeAll().catch(() => {});
    throw error;
  }
}

async function start(
  settings: Settings,
  directory: string,
  opened: Opened,
  say: (line: string) => void,
): Promise<RunningServer> {
  const { server } = settings;
  const meshActions = new MeshActions(settings.mesh.github.token);
  opened.add(() => meshActions.close());
  const builtins = builtinsWith(settings, meshActions.byReference);
  const loadSwarm = () => servedSwarm(settings, directory, builtins);
  const swarm = await loadSwarm();
  const logger = createLogger(settings.log);
  const data =
    settings.store.database === "memory"
      ? undefined
      : (server.data ?? dataDirectoryFor(swarm.definition.name, directory));
  const store = await openServerStore(data, settings, say);
  opened.add(() => store.close());

  const federation = await openFederation({
    settings,
    data,
    store,
    swarm: swarm.definition.name,
    report: ({ code, message, cause }) => logger.warn({ code, err: cause }, message),
    isNameTaken: (name) => mesh?.carrier.owns(name) === true || Object.hasOwn(settings.a2a.agents, name),
  });
  if (federation !== undefined) opened.add(() => federation.close());
  const isNameTaken = (name: string) =>
    name === swarm.definition.name ||
    federation?.registry.has(name) === true ||
    Object.hasOwn(settings.a2a.agents, name);
  const mesh: ServedMesh | undefined = await openServedMesh(settings, data, store, isNameTaken, logger);
  if (mesh !== undefined) {
    meshActions.use(mesh.node);
    opened.add(() => mesh.close());
  }

  const a2a = openA2aCarrier(settings, {
    store,
    env: process.env,
    isNameTaken: (name) =>
      name === swarm.definition.name ||
      federation?.registry.has(name) === true ||
      mesh?.carrier.owns(name) === true,
    report: ({ code, message, cause }) => logger.warn({ code, err: cause }, message),
  });

  let grace: number | undefined;
  const { mailroom, takeUp } = await openMailroom(
    settings,
    swarm,
    store,
    { mesh, federation, a2a },
    (problem) => {
      // Whoever waits for `failed` says it, once.
      if (problem.code === "store_failed") return;
      logger.error({ code: problem.code, task: problem.task, err: problem.cause }, problem.message);
    },
  );
  const closing = () => mailroom.close(grace === undefined ? {} : { grace });
  opened.add(async () => {
    await closing();
    await mailroom.bus.close();
  });
  // Each of them before the runtime ends, which they tell what became of mail.
  opened.add(async () => a2a?.close());
  opened.add(async () => federation?.stop());
  a2a?.start(mailroom.runtime);

  const report = (trouble: object) => logger.warn(trouble, "authentication");
  const tokens = new Tokens({ store, clock: systemClock, report });
  opened.add(() => tokens.close());
  const context = new ControlContext();
  const callers = await createAuthenticator(
    { ...settings.auth, dev: server.dev },
    { tokens, clock: systemClock, report },
  );
  const authenticator = context.before(callers);
  const map = await openMap(settings, {
    mailroom,
    store,
    authenticator: callers,
    report: (error) => logger.error({ err: error }, "map"),
  });
  const closeMap = async () => map?.close();
  opened.add(closeMap);

  const doors = openAgentDoors(settings, mailroom, store, (error) =>
    logger.warn({ err: error }, "mcp or a2a"),
  );
  const { cert, key } = server.tls;
  const http = await createServer({
    mailroom,
    authenticator,
    version: versions().mailroom,
    dev: server.dev,
    limits: httpLimits(settings),
    strictIds: server.settings.strictIds,
    defaultTimeout: server.settings.waitTimeout / 1000,
    trustProxy: server.trustProxy,
    logger,
    ...(server.publicUrl !== undefined && { publicUrl: server.publicUrl }),
    ...(server.corsOrigins.length > 0 && { cors: { origins: server.corsOrigins } }),
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
    ...(!server.metrics && { metrics: false }),
    loading: { builtins, ...(server.swarm.allowModules && { modules: loadModuleExport }) },
    ...(federation !== undefined && { federation }),
    rawRoutes: [...doors.routes, ...(mesh?.routes() ?? [])],
    mounts: doors.mounts,
    ...(map !== undefined && { map }),
  });
  http.app.server.maxConnections = settings.limits.connections;
  opened.add(() => http.close());
  // Before the listener: those who are connected are told, and may come back.
  opened.add(closeMap);
  const url = await listen(http, server.host, server.port);

  // Before the runtime ends: what comes in while it does would find nobody.
  opened.add(async () => mesh?.stop());
  federation?.start(mailroom.runtime, mailroom.bus);
  await mesh?.start(mailroom.runtime);
  const control = await tryControl(data, { context, tokens, http, mesh, store, map });
  if (control !== undefined) opened.add(() => control.close());
  // Last of all: it is made once, and a start that fails shows it to nobody.
  const usesTokens = !server.dev && settings.auth.mode.includes("token");
  const firstToken = usesTokens ? await tokens.ensureAdminToken() : undefined;
  // When everybody can be served already: what was left may be much.
  const unfinished = await takeUp();
  return {
    url,
    mailroom,
    http,
    swarm,
    data,
    mesh,
    loadSwarm,
    controlled: control !== undefined,
    firstToken,
    unfinished,
    failed: mailroom.failed,
    close: async (wait) => {
      grace = wait;
      // The clocks inside keep no process alive, and by now nothing else does: it would end in the middle of this.
      const alive = setInterval(() => {}, 60_000);
      const [closed] = await Promise.allSettled([opened.closeAll()]);
      clearInterval(alive);
      const { failure, health } = store.writer;
      // Why it ends is what matters, not what followed from that.
      if (failure !== undefined) {
        throw new CliError("store_failed", failure.message, { exit: EXIT.storeFailed, cause: failure });
      }
      if (closed.status === "rejected") throw closed.reason;
      const { unwritten } = await closing();
      if (unwritten > 0) throw unwrittenError(unwritten, health.reason);
    },
  };
}

function unwrittenError(unwritten: number, reason: string | undefined): CliError {
  const why = reason === undefined ? "" : ` (${reason})`;
  return new CliError(
    "unwritten",
    `the store could not be written until the end${why}: ${unwritten} results are lost that nobody was told of`,
    {
      exit: EXIT.unwritten,
      hint: "what was acknowledged is safe, and the next start goes on from there",
    },
  );
}

/** A data directory in which `mesh init` was run belongs to an agent of the mesh. */
async function openServedMesh(
  settings: Settings,
  data: string | undefined,
  store: FullStore,
  isNameTaken: (name: string) => boolean,
  logger: FastifyBaseLogger,
): Promise<ServedMesh | undefined> {
  const identity = data === undefined ? undefined : meshIdentity(data);
  if (data === undefined || identity === undefined) {
    if (settings.mesh.listen === undefined) return undefined;
    throw new CliError("not_initialised", "mesh.listen is set, but there is no agent of the mesh here", {
      hint: "run 'mailroom mesh init' first",
    });
  }
  return ServedMesh.open(
    {
      settings,
      data,
      store,
      report: ({ code, message, cause }) => logger.warn({ code, err: cause }, message),
      isNameTaken,
    },
    identity,
  );
}

/** Opens it without taking up what was running: that comes when the doors are open. */
async function openMailroom(
  settings: Settings,
  swarm: ServedSwarm,
  store: FullStore,
  ways: {
    readonly mesh: ServedMesh | undefined;
    readonly federation: Federation | undefined;
    readonly a2a: A2aCarrier | undefined;
  },
  onProblem: NonNullable<MailroomOptions["onProblem"]>,
): Promise<{ readonly mailroom: Mailroom; readonly takeUp: () => Promise<number> }> {
  const { mesh, federation, a2a } = ways;
  const retention = retentionOf(settings);
  let find: (unfinished: number) => void = () => {};
  const found = new Promise<number>((resolve) => {
    find = resolve;
  });
  const mailroom = await Mailroom.open({
    swarm: swarm.definition,
    store,
    limits: runtimeLimits(settings),
    onProblem,
    carriers: [federation?.carrier, mesh?.carrier, a2a].filter((carrier) => carrier !== undefined),
    ...(federation !== undefined && { systemActions: federation.systemActions }),
    ...(retention !== undefined && { retention }),
    takeUp: false,
    onRecovery: (_recovered, of) => find(of),
  });
  const takeUp = () => {
    const takingUp = mailroom.takeUp();
    // What keeps it from ending well ends the server, too, and is told there.
    takingUp.catch(() => {});
    return Promise.race([found, takingUp]);
  };
  return { mailroom, takeUp };
}

async function listen(http: MailroomServer, host: string, port: number): Promise<string> {
  try {
    return await http.listen({ host, port });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EADDRINUSE") {
      throw new CliError("port_in_use", `port ${port} on ${host} is in use by another program`, {
        hint: "choose another with --port, or --port 0 for any that is free",
        cause: error,
      });
    }
    if (code === "EACCES") {
      throw new CliError("port_refused", `this user may not listen on port ${port}`, {
        hint: "choose one above 1023 with --port",
        cause: error,
      });
    }
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
      throw new CliError("bad_host", `'${host}' is not an address of this machine`, {
        hint: "leave --host out, or use 0.0.0.0 for every address",
        cause: error,
      });
    }
    throw error;
  }
}

/** A server without a control socket still serves; only commands on its data directory cannot reach it. */
async function tryControl(
  data: string | undefined,
  parts: {
    context: ControlContext;
    tokens: Tokens;
    http: MailroomServer;
    mesh: ServedMesh | undefined;
    store: FullStore;
    map: MapServer | undefined;
  },
): Promise<Control | undefined> {
  const path = data === undefined ? undefined : controlPath(data);
  if (data === undefined || path === undefined) return undefined;
  const { context, tokens, http, mesh, store, map } = parts;
  const operator = mesh && { node: mesh.node, reads: store.mesh, directory: data };
  return openControl({
    path,
    context,
    tokens,
    also: [meshControl(operator)],
    ...(map !== undefined && { map }),
    app: (request, response) => http.app.routing(request, response),
  });
}

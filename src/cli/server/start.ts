/** Puts a server together from its settings: store, swarm, authentication, HTTP, control socket. */

import type { FastifyBaseLogger } from "fastify";
import type { A2aCarrier } from "../../a2a/index.js";
import { type CreatedToken, createAuthenticator, Tokens } from "../../auth/index.js";
import type { Settings } from "../../config/index.js";
import type { MapServer } from "../../conversations/index.js";
import type { Federation } from "../../federation/index.js";
import { createServer, type MailroomServer } from "../../http/index.js";
import { systemClock } from "../../library/clock.js";
import { Mailroom } from "../../library/mailroom.js";
import type { SqliteStore } from "../../store/index.js";
import { loadModuleExport } from "../../swarm/modules.js";
import { ControlContext } from "../control/context.js";
import { meshControl } from "../control/mesh-api.js";
import { controlPath } from "../control/path.js";
import { type Control, openControl } from "../control/server.js";
import { CliError } from "../exit.js";
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
  /** Lets what runs finish for up to `grace` milliseconds; what does not is taken up at the next start. */
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

  const a2a = openA2aCarrier(
    settings,
    store,
    process.env,
    (name) =>
      name === swarm.definition.name ||
      federation?.registry.has(name) === true ||
      mesh?.carrier.owns(name) === true,
  );

  let grace: number | undefined;
  const mailroom = await openMailroom(settings, swarm, store, { mesh, federation, a2a }, (problem) =>
    logger.error({ code: problem.code, task: problem.task, err: problem.cause }, problem.message),
  );
  a2a?.bind(mailroom.runtime);
  opened.add(async () => {
    await mailroom.close(grace === undefined ? {} : { grace });
    await mailroom.bus.close();
  });
  opened.add(async () => a2a?.close());

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
    close: async (wait) => {
      grace = wait;
      // The clocks inside keep no process alive, and by now nothing else does: it would end in the middle of this.
      const alive = setInterval(() => {}, 60_000);
      await opened.closeAll().finally(() => clearInterval(alive));
    },
  };
}

/** A data directory in which `mesh init` was run belongs to an agent of the mesh. */
async function openServedMesh(
  settings: Settings,
  data: string | undefined,
  store: SqliteStore,
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

function openMailroom(
  settings: Settings,
  swarm: ServedSwarm,
  store: SqliteStore,
  ways: {
    readonly mesh: ServedMesh | undefined;
    readonly federation: Federation | undefined;
    readonly a2a: A2aCarrier | undefined;
  },
  onProblem: NonNullable<Parameters<typeof Mailroom.open>[0]["onProblem"]>,
): Promise<Mailroom> {
  const { mesh, federation, a2a } = ways;
  const retention = retentionOf(settings);
  return Mailroom.open({
    swarm: swarm.definition,
    store,
    limits: runtimeLimits(settings),
    onProblem,
    carriers: [federation?.carrier, mesh?.carrier, a2a].filter((carrier) => carrier !== undefined),
    ...(federation !== undefined && { systemActions: federation.systemActions }),
    ...(retention !== undefined && { retention }),
  });
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
    store: SqliteStore;
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

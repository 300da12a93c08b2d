/** Puts a server together from its settings: store, swarm, authentication, HTTP, control socket. */
import { type CreatedToken, createAuthenticator, Tokens } from "../../auth/index.js";
import type { Settings } from "../../config/index.js";
import { createServer, type MailroomServer } from "../../http/index.js";
import { systemClock } from "../../library/clock.js";
import { Mailroom } from "../../library/mailroom.js";
import { openSqliteStore, type SqliteStore } from "../../store/index.js";
import { loadModuleExport } from "../../swarm/modules.js";
import { ControlContext } from "../control/context.js";
import { controlPath } from "../control/path.js";
import { type Control, openControl } from "../control/server.js";
import { CliError } from "../exit.js";
import { dataDirectoryFor } from "../place.js";
import { versions } from "../version.js";
import { httpLimits, retentionOf, runtimeLimits } from "./limits.js";
import { createLogger } from "./log.js";
import { type ServedSwarm, servedSwarm } from "./swarm.js";

export interface RunningServer {
  readonly url: string;
  readonly mailroom: Mailroom;
  readonly http: MailroomServer;
  readonly swarm: ServedSwarm;
  /** Nothing when everything is kept in memory. */
  readonly data: string | undefined;
  /** Whether commands on this machine can reach it by its data directory. */
  readonly controlled: boolean;
  /** Made at the first start, and shown this once. */
  readonly firstToken: CreatedToken | undefined;
  /** Lets what runs finish for up to `grace` milliseconds; what does not is taken up at the next start. */
  close(grace?: number): Promise<void>;
}

/** What was opened is closed again, in the opposite order, also when the start fails half way. */
class Opened {
  readonly #closers: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#closers.unshift(close);
  }

  async closeAll(): Promise<void> {
    for (const close of this.#closers.splice(0)) await close();
  }
}

export async function startServer(settings: Settings, directory: string): Promise<RunningServer> {
  const opened = new Opened();
  try {
    return await start(settings, directory, opened);
  } catch (error) {
    await opened.closeAll();
    throw error;
  }
}

async function start(settings: Settings, directory: string, opened: Opened): Promise<RunningServer> {
  const { server } = settings;
  const swarm = await servedSwarm(settings, directory);
  const logger = createLogger(settings.log);
  const data =
    settings.store.database === "memory"
      ? undefined
      : (server.data ?? dataDirectoryFor(swarm.definition.name, directory));
  const store = await openStore(data, settings);
  opened.add(() => store.close());

  let grace: number | undefined;
  const mailroom = await openMailroom(settings, swarm, store, (problem) =>
    logger.error({ code: problem.code, task: problem.task, err: problem.cause }, problem.message),
  );
  opened.add(async () => {
    await mailroom.close(grace === undefined ? {} : { grace });
    await mailroom.bus.close();
  });

  const report = (trouble: object) => logger.warn(trouble, "authentication");
  const tokens = new Tokens({ store, clock: systemClock, report });
  opened.add(() => tokens.close());
  const context = new ControlContext();
  const callers = await createAuthenticator(
    { ...settings.auth, dev: server.dev },
    { tokens, clock: systemClock, report },
  );
  const usesTokens = !server.dev && settings.auth.mode.includes("token");
  const firstToken = usesTokens ? await tokens.ensureAdminToken() : undefined;

  const { cert, key } = server.tls;
  const http = await createServer({
    mailroom,
    authenticator: context.before(callers),
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
    ...(server.swarm.allowModules && { loading: { modules: loadModuleExport } }),
  });
  opened.add(() => http.close());
  const url = await listen(http, server.host, server.port);

  const control = await tryControl(data, { context, tokens, http });
  if (control !== undefined) opened.add(() => control.close());
  return {
    url,
    mailroom,
    http,
    swarm,
    data,
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

function openStore(data: string | undefined, { store }: Settings): Promise<SqliteStore> {
  return data === undefined
    ? openSqliteStore({ path: ":memory:" })
    : openSqliteStore({ directory: data, durability: store.durability });
}

function openMailroom(
  settings: Settings,
  swarm: ServedSwarm,
  store: SqliteStore,
  onProblem: NonNullable<Parameters<typeof Mailroom.open>[0]["onProblem"]>,
): Promise<Mailroom> {
  const retention = retentionOf(settings);
  return Mailroom.open({
    swarm: swarm.definition,
    store,
    limits: runtimeLimits(settings),
    onProblem,
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
  parts: { context: ControlContext; tokens: Tokens; http: MailroomServer },
): Promise<Control | undefined> {
  const path = data === undefined ? undefined : controlPath(data);
  if (path === undefined) return undefined;
  const { context, tokens, http } = parts;
  return openControl({
    path,
    context,
    tokens,
    app: (request, response) => http.app.routing(request, response),
  });
}

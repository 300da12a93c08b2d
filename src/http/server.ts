/** The HTTP server of a mailroom. */
import { randomUUID } from "node:crypto";
import cors from "@fastify/cors";
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from "fastify";
import type { SwarmDefinition } from "../engine/definition.js";
import { Callers } from "./callers.js";
import { Door } from "./door.js";
import { asHttpError, errorAnswer, HttpError } from "./errors.js";
import { sweepKeys } from "./idempotency.js";
import { parseJsonBody } from "./json-body.js";
import { createListener, type Listener } from "./listener.js";
import { mountMap } from "./map-door.js";
import { MethodTable } from "./methods.js";
import { describeMounts, installMounts } from "./mounts.js";
import type { ServerOptions } from "./options.js";
import { checkDevelopmentOrigin, isLoopback } from "./origin.js";
import { peerAddress } from "./peer-address.js";
import { installRawRoutes } from "./raw-routes.js";
import { type Caller, type Route, STREAMED } from "./route.js";
import { allRoutes } from "./routes/index.js";
import { securityHeaders } from "./security-headers.js";
import { restoreLoadedSwarm, useConfiguredSwarm } from "./swarm-loading.js";
import { traceTasks } from "./telemetry/tracing.js";
import { Checker } from "./validation.js";

declare module "fastify" {
  interface FastifyRequest {
    /** Internal key of the task that the request is about, for the log. */
    taskKey: string | undefined;
    /** Who calls, once that is known; nobody on routes that let anybody in. */
    caller: Caller | undefined;
  }
}

export interface MailroomServer {
  readonly app: FastifyInstance;
  /** Opens the socket; the URL it is reached by. Default 127.0.0.1 and a free port. */
  listen(options?: { readonly host?: string; readonly port?: number }): Promise<string>;
  /** Puts another configured definition of the swarm in force, in place of one loaded over HTTP, too (decisions D5). */
  useSwarm(definition: SwarmDefinition): Promise<void>;
  /** Reads the certificate files again. */
  reloadTls(): void;
  /**
   * Takes no more requests, lets those who wait go (202: their tasks go on), ends the streams (they can be taken up
   * again), and closes. The mailroom stays open.
   */
  close(): Promise<void>;
}

/** Milliseconds that connections get to finish when the server closes. */
const CLOSING_GRACE = 5_000;

export async function createServer(options: ServerOptions): Promise<MailroomServer> {
  const door = new Door(options);
  await restoreLoadedSwarm(door);
  const scheme = options.tls === undefined ? "http" : "https";
  let listener: Listener | undefined;
  const app = fastify({
    serverFactory: (handler) => {
      listener = createListener(handler, options.tls);
      return listener.server;
    },
    ...(options.logger !== undefined && { loggerInstance: options.logger }),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "request" }),
    // The hook below answers in the form of all other refusals.
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    bodyLimit: door.limits.body,
    trustProxy: trusted(options.trustProxy),
    // Task ids have up to 256 characters, each of up to twelve when it is percent-encoded.
    routerOptions: { maxParamLength: 4096 },
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  });
  prepareBodies(app);
  app.decorateRequest("taskKey", undefined);
  app.decorateRequest("caller", undefined);
  await installHooks(app, door);
  const callers = installRoutes(app, door, allRoutes(door));

  const stopSweeping = sweepKeys(door.kept, (error) =>
    app.log.warn({ err: error }, "old idempotency keys could not be removed"),
  );
  const stopCounting = door.metrics.watch(options.mailroom.bus);
  const stopTracing = traceTasks(options.mailroom.bus, options.mailroom.swarm.name);
  await app.ready();
  const map =
    options.map === undefined
      ? undefined
      : mountMap(app.server, options.map, {
          dev: options.dev === true,
          cors: options.cors,
          callers,
          addressOf: peerAddress(options.trustProxy),
        });

  return {
    app,
    async listen({ host = "127.0.0.1", port = 0 } = {}) {
      if (options.dev === true && !isLoopback(host === "::1" ? "[::1]" : host)) {
        throw new Error(
          `in development mode everybody is believed, so it cannot listen on ${host}: use 127.0.0.1`,
        );
      }
      await app.listen({
        host,
        port,
        listenTextResolver: (address) => `listening at ${address.replace(/^http/, scheme)}`,
      });
      const address = app.server.address();
      const actual = typeof address === "object" && address !== null ? address.port : port;
      const name = host.includes(":") ? `[${host}]` : host;
      return `${scheme}://${name}:${actual}`;
    },
    useSwarm: (definition) => useConfiguredSwarm(door, definition),
    reloadTls: () => listener?.reloadTls(),
    async close() {
      door.closing.begin();
      door.revocations.close();
      stopSweeping();
      stopCounting();
      stopTracing();
      const cancel = door.clock.after(CLOSING_GRACE, () => listener?.closeAll());
      await Promise.all((options.mounts ?? []).map((mount) => mount.close?.()));
      listener?.closeIdle();
      map?.close();
      await app.close();
      cancel();
    },
  };
}

function trusted(proxies: ServerOptions["trustProxy"]) {
  if (typeof proxies === "number") return (_address: string, hop: number) => hop < proxies;
  return typeof proxies === "object" ? [...proxies] : (proxies ?? false);
}

/** Bodies are JSON, whatever the method: clients of the reference send one with `GET /task`. */
function prepareBodies(app: FastifyInstance): void {
  app.addHttpMethod("GET", { hasBody: true, overrideExisting: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "string" },
    async (_request: FastifyRequest, text: string) => parseJsonBody(text),
  );
  app.addContentTypeParser("*", { parseAs: "string" }, async (_request: FastifyRequest, text: string) => {
    if (text.length === 0) return undefined;
    throw new HttpError("unsupported_media_type", "bodies are JSON: send 'content-type: application/json'");
  });
}

async function installHooks(app: FastifyInstance, door: Door): Promise<void> {
  const { options } = door;
  const headers = securityHeaders(options.tls !== undefined);
  // Hooks that every request passes are callbacks: a promise more per request is felt.
  app.addHook("onRequest", (request, reply, done) => {
    reply.headers(headers);
    reply.header("x-request-id", request.id);
    if (door.closing.begun) throw new HttpError("closed", "the server is shutting down: try again later");
    if (options.dev === true) checkDevelopmentOrigin(request.headers, options.cors);
    done();
  });
  if (options.cors !== undefined) {
    const { origins, credentials = false } = options.cors;
    const mounted = (options.mounts ?? []).flatMap(({ headers: own }) => own ?? []);
    await app.register(cors, {
      origin: origins.includes("*") ? "*" : [...origins],
      credentials,
      allowedHeaders: [
        "authorization",
        "content-type",
        "idempotency-key",
        "last-event-id",
        ...mounted.flatMap(({ sent }) => sent),
      ],
      exposedHeaders: [
        "location",
        "retry-after",
        "x-request-id",
        "idempotency-replayed",
        ...mounted.flatMap(({ read }) => read),
      ],
      methods: ["GET", "POST", "DELETE"],
      maxAge: 600,
    });
  }
  app.addHook("onResponse", (request, reply, done) => {
    const route = request.routeOptions.url ?? "unknown";
    const seconds = reply.elapsedTime / 1000;
    door.metrics.request(request.method, route, reply.statusCode, seconds);
    request.log.debug(
      {
        method: request.method,
        route,
        status: reply.statusCode,
        seconds,
        ...(request.taskKey !== undefined && { task: request.taskKey }),
      },
      "request",
    );
    done();
  });
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
}

function installRoutes(app: FastifyInstance, door: Door, routes: readonly Route[]): Callers {
  const checker = new Checker();
  const callers = new Callers({
    authenticator: door.options.authenticator,
    failedAuthentications: door.limits.failedAuthentications,
    requestsPerCaller: door.limits.requestsPerCaller,
    requestsPerAddress: door.limits.requestsPerAddress,
    onFailure: () => door.metrics.failedAuthentication(),
  });
  for (const route of routes) {
    const handle = route.prepare(checker);
    app.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      // Before the body is read: strangers do not get to make the server work.
      onRequest: async (request) => {
        request.caller = await callers.identify(request, route.access);
      },
      handler: async (request, reply) => {
        const handled = await handle({ request, reply }, request.caller);
        if (handled === STREAMED) return reply;
        if (handled.headers !== undefined) reply.headers(handled.headers);
        return reply.code(handled.status).send(handled.body);
      },
    });
  }
  const { rawRoutes = [], mounts = [] } = door.options;
  if (rawRoutes.length > 0) installRawRoutes(app, callers, rawRoutes);
  installMounts(app, door, callers, mounts);
  const methods = new MethodTable([...routes, ...rawRoutes, ...describeMounts(mounts)]);
  app.setNotFoundHandler(async (request) => {
    const allowed = methods.allowedAt(request.url);
    if (allowed.length === 0) throw new HttpError("not_found", "Not Found");
    throw new HttpError("method_not_allowed", "Method Not Allowed", {
      headers: { allow: allowed.join(", ") },
    });
  });
  return callers;
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = asHttpError(error);
  if (known === undefined) request.log.error({ err: error, task: request.taskKey }, "a request failed");
  else if (known.cause !== undefined) request.log.debug({ err: known.cause }, "a request was refused");
  const { status, headers, body } = errorAnswer(
    known ??
      new HttpError("internal_error", "the server made a mistake", { details: { request_id: request.id } }),
  );
  return reply.code(status).headers(headers).send(body);
}

/**
 * The listener: serves the extensions' routes, mounts and upgrades, with one authentication and one set of limits.
 */
import { randomUUID } from "node:crypto";
import cors from "@fastify/cors";
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from "fastify";
import type { Principal } from "../auth/index.js";
import { isLoopbackHost, MailroomError } from "../base/index.js";
import type { Mount } from "../extension/index.js";
import { type Caller, type DescribedRoute, type RawRoute, type Route, STREAMED } from "../extension/index.js";
import { endsAt, RequestAuthenticator } from "./authentication.js";
import { limitBodies } from "./body-memory.js";
import { limitConnections } from "./connections.js";
import { HttpContext } from "./context.js";
import { errorResponse, toPublicError } from "./error-response.js";
import { limitHttp2Streams } from "./http2-streams.js";
import { sweepKeys } from "./idempotency.js";
import { parseJsonBody } from "./json-body.js";
import { createListener, type Listener } from "./listener.js";
import { describeMounts, installMounts } from "./mounts.js";
import type { ListenerOptions } from "./options.js";
import { checkDevelopmentOrigin } from "./origin.js";
import { installPages, redirectHome } from "./pages.js";
import { peerAddress } from "./peer-address.js";
import { describeRawRoutes, installRawRoutes } from "./raw-routes.js";
import { HttpRequest } from "./request.js";
import { docsRoutes } from "./routes/docs.js";
import { metricsRoutes } from "./routes/metrics.js";
import { statsRoutes } from "./routes/stats.js";
import { serveUpgrades } from "./upgrades.js";
import { Checker } from "./validation.js";

declare module "fastify" {
  interface FastifyRequest {
    /** Internal key of the request's task, for the log. */
    taskKey: string | undefined;
    /** The authenticated caller; undefined on public routes. */
    caller: Caller | undefined;
    /** Who sent the request, also where callers are not distinguished by instance. */
    principal: Principal | undefined;
  }
}

export interface HttpListener {
  readonly app: FastifyInstance;
  /** Opens the socket and returns the URL. Default: 127.0.0.1 and a free port. */
  listen(options?: { readonly host?: string; readonly port?: number }): Promise<string>;
  /** Reads the certificate files again. */
  reloadTls(): void;
  /** New requests get 503. Waiting requests get 202, and streams end; their tasks continue. */
  stopAccepting(): void;
  /** Stops accepting, finishes open requests within a grace period, and closes. The mailroom stays open. */
  close(): Promise<void>;
}

/** Milliseconds that connections get to finish when the listener closes. */
const CLOSING_GRACE = 5_000;

export async function createHttpListener(options: ListenerOptions): Promise<HttpListener> {
  const context = new HttpContext(options);
  const { server } = options;
  const scheme = options.tls === undefined ? "http" : "https";
  let listener: Listener | undefined;
  const app = fastify({
    serverFactory: (handler) => {
      listener = createListener(handler, options.tls, context.limits.http2StreamsPerConnection);
      return listener.server;
    },
    ...(options.logger !== undefined && { loggerInstance: options.logger }),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "request" }),
    // The hook below responds in the form of all other rejections.
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    bodyLimit: context.limits.body,
    trustProxy: trusted(options.trustProxy),
    // Task ids have up to 256 characters, each of up to twelve when it is percent-encoded.
    routerOptions: { maxParamLength: 4096 },
    schemaController: { compilersFactory: NO_SCHEMAS },
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  });
  prepareBodies(app);
  app.decorateRequest("taskKey", undefined);
  app.decorateRequest("caller", undefined);
  app.decorateRequest("principal", undefined);
  limitBodies(app, context.limits, context.clock);
  const served = servedBy(context);
  await installHooks(app, context, served.mounts);
  const callers = installRoutes(app, context, served);

  const stopSweeping = sweepKeys(context.kept, (error) =>
    app.log.warn({ err: error }, "removing expired idempotency keys failed"),
  );
  const { bus, runtime, store } = options.mailroom;
  const counting = [
    context.metrics.watch(bus),
    context.stats.watch(bus),
    runtime.onTurn((agent, ms) => {
      context.stats.turn(agent, ms);
      context.metrics.turn(agent, ms);
    }),
    store.writer.onCommit((ms) => {
      context.stats.commit(ms);
      context.metrics.commit(ms);
    }),
  ];
  const stopTracing = await startTracing(options.mailroom);
  await app.ready();
  limitConnections(app.server, context.limits.connectionsPerAddress, options.trustProxy);
  const addressOf = peerAddress(options.trustProxy);
  const stopUpgrades = serveUpgrades(app.server, {
    upgrades: options.extensions.flatMap(({ upgrades }) => upgrades ?? []),
    dev: server.dev,
    cors: options.cors,
    addressOf,
    authenticatorFor: (request) => callers.guarded(options.authenticator, addressOf(request)),
    credentialWith: (cookies, proof) => {
      for (const extension of options.extensions) {
        const bearer = extension.credentialWith?.(cookies, proof);
        if (bearer !== undefined) return bearer;
      }
      return undefined;
    },
  });

  const stopAccepting = () => {
    context.closing.begin();
    context.revocations.close();
    stopSweeping();
    for (const stop of counting.splice(0)) stop();
    stopTracing();
  };
  return {
    app,
    async listen({ host = "127.0.0.1", port = 0 } = {}) {
      if (server.dev && !isLoopbackHost(host)) {
        throw new Error(
          `development mode accepts every caller, so the server cannot listen on ${host}: use 127.0.0.1`,
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
    reloadTls: () => listener?.reloadTls(),
    stopAccepting,
    async close() {
      stopAccepting();
      const cancel = context.clock.after(CLOSING_GRACE, () => listener?.closeAll());
      listener?.closeIdle();
      stopUpgrades();
      await app.close();
      cancel();
    },
  };
}

/** The global where programs register a trace collector. OpenTelemetry's API is loaded only if one is registered. */
const TELEMETRY = Symbol.for("opentelemetry.js.api.1");

async function startTracing({ bus, swarm }: ListenerOptions["mailroom"]): Promise<() => void> {
  if (!(TELEMETRY in globalThis)) return () => {};
  const { traceTasks } = await import("../telemetry/tracing.js");
  return traceTasks(bus, swarm.name);
}

/** Routes check bodies themselves, so fastify need not load its validator and its serializer. */
const NO_SCHEMAS = { buildValidator: noSchemas, buildSerializer: noSchemas };

function noSchemas(): never {
  throw new Error("routes have no fastify schemas: see validation.ts");
}

/** Everything that the extensions and the listener serve. */
interface Served {
  readonly routes: readonly Route[];
  readonly rawRoutes: readonly RawRoute[];
  readonly mounts: readonly Mount[];
  /** For the OpenAPI document and for the methods that a path allows. */
  readonly described: readonly DescribedRoute[];
}

function servedBy(context: HttpContext): Served {
  const { extensions, server } = context.options;
  const all = extensions.flatMap(({ routes }) => routes ?? []);
  const rawRoutes = all.filter((route): route is RawRoute => !isRoute(route));
  const mounts = extensions.flatMap((extension) => extension.mounts ?? []);
  const own = [...all.filter(isRoute), ...metricsRoutes(context), ...statsRoutes(context)];
  const others = [...describeMounts(mounts), ...describeRawRoutes(rawRoutes)];
  const docs = docsRoutes(server, [...own, ...others]);
  const routes = [...own, ...docs];
  return { routes, rawRoutes, mounts, described: [...routes, ...others] };
}

function isRoute(route: Route | RawRoute): route is Route {
  return "prepare" in route;
}

function trusted(proxies: ListenerOptions["trustProxy"]) {
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
    throw new MailroomError(
      "unsupported_media_type",
      "bodies are JSON: send 'content-type: application/json'",
    );
  });
}

async function installHooks(
  app: FastifyInstance,
  context: HttpContext,
  mounts: readonly Mount[],
): Promise<void> {
  const { options } = context;
  const headers = securityHeaders(options.tls !== undefined);
  // Hooks for every request are callbacks, because a promise per request has a measurable cost.
  app.addHook("onRequest", (request, reply, done) => {
    reply.headers(headers);
    reply.header("x-request-id", request.id);
    if (context.closing.begun) throw new MailroomError("closed", "the server is shutting down: retry later");
    if (options.server.dev) checkDevelopmentOrigin(request.headers, options.cors);
    done();
  });
  if (options.tls !== undefined) limitHttp2Streams(app, context.limits.http2StreamsPerAddress);
  const credentials = options.extensions.filter(({ credential }) => credential !== undefined);
  if (credentials.length > 0) {
    app.addHook("onRequest", (request, _reply, done) => {
      const { headers, host } = request;
      if (headers.authorization === undefined && headers.cookie !== undefined) {
        for (const extension of credentials) {
          const lent = extension.credential?.({ headers, host });
          if (lent === undefined) continue;
          headers.authorization = `Bearer ${lent.bearer}`;
          endsAt.set(headers, lent.expires);
        }
      }
      done();
    });
  }
  redirectHome(
    app,
    options.extensions.flatMap(({ pages }) => pages ?? []),
  );
  if (options.cors !== undefined) {
    const { origins, credentials = false } = options.cors;
    const mounted = mounts.flatMap(({ headers: own }) => own ?? []);
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
    context.metrics.request(request.method, route, reply.statusCode, seconds);
    context.stats.request(reply.elapsedTime);
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

function installRoutes(
  app: FastifyInstance,
  context: HttpContext,
  { routes, rawRoutes, mounts, described }: Served,
): RequestAuthenticator {
  const checker = new Checker();
  const callers = new RequestAuthenticator({
    authenticator: context.options.authenticator,
    failedAuthentications: context.limits.failedAuthentications,
    requestsPerCaller: context.limits.requestsPerCaller,
    requestsPerAddress: context.limits.requestsPerAddress,
    publicRequestsPerAddress: context.limits.publicRequestsPerAddress,
    onFailure: () => context.metrics.failedAuthentication(),
  });
  for (const route of routes) {
    const handle = route.prepare(checker);
    app.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      // Before the body is read: an unauthenticated client must not make the server work.
      onRequest: async (request) => {
        request.caller = await callers.identify(request, route.access);
      },
      handler: async (request, reply) => {
        // One caller's reads, however many, leave every turn of the event loop to the others too.
        if (route.method === "GET" && request.caller !== undefined)
          await context.turns.whole(request.caller.name);
        const handled = await handle(
          {
            params: request.params,
            query: request.query,
            body: request.body,
            request: (params, body) =>
              new HttpRequest({ context, callers, request, reply }, { route: route.id, params, body }),
          },
          request.caller,
        );
        if (handled === STREAMED) return reply;
        if (handled.headers !== undefined) reply.headers(handled.headers);
        return reply.code(handled.status).send(handled.body);
      },
    });
  }
  if (rawRoutes.length > 0) installRawRoutes(app, callers, rawRoutes);
  installMounts(app, context, callers, mounts);
  installPages(
    app,
    callers,
    context.options.extensions.flatMap(({ pages }) => pages ?? []),
  );
  const methods = new MethodTable(described);
  app.setNotFoundHandler(async (request, reply) => {
    const allowed = methods.allowedAt(request.url);
    if (allowed.length === 0) throw new MailroomError("not_found", "Not Found");
    reply.header("allow", allowed.join(", "));
    throw new MailroomError("method_not_allowed", "Method Not Allowed");
  });
  return callers;
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = toPublicError(error);
  if (known === undefined) request.log.error({ err: error, task: request.taskKey }, "request failed");
  else if (known.cause !== undefined) request.log.debug({ err: known.cause }, "request rejected");
  const { status, headers, body } = errorResponse(
    known ??
      new MailroomError("internal_error", "internal server error", { details: { request_id: request.id } }),
  );
  return reply.code(status).headers(headers).send(body);
}

/** The methods of each path, to answer 405 instead of 404. */
class MethodTable {
  readonly #paths: { readonly pattern: RegExp; readonly methods: readonly string[] }[] = [];

  constructor(routes: readonly { readonly path: string; readonly method: string }[]) {
    for (const path of new Set(routes.map((route) => route.path))) {
      const methods = new Set(routes.filter((route) => route.path === path).map(({ method }) => method));
      if (methods.has("GET")) methods.add("HEAD");
      const pattern = path.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{\w+\}/g, "[^/]+");
      this.#paths.push({ pattern: new RegExp(`^${pattern}$`), methods: [...methods] });
    }
  }

  allowedAt(url: string): readonly string[] {
    const path = url.split(/[?#]/, 1)[0] ?? "";
    return this.#paths.find(({ pattern }) => pattern.test(path))?.methods ?? [];
  }
}

/** Security headers for every response. */
function securityHeaders(tls: boolean): Readonly<Record<string, string>> {
  return {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    ...(tls && { "strict-transport-security": "max-age=31536000" }),
  };
}

/**
 * Routes of other rooms that read the bytes of a request themselves: a signature over a body holds for its bytes, not
 * for what a parser makes of them. They share the door's authentication, limits and headers.
 */
import type { FastifyInstance } from "fastify";
import type { Callers } from "./callers.js";
import { HttpError } from "./errors.js";
import type { DescribedRoute } from "./route.js";

export interface RawRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
  readonly address: string;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawRoute extends Omit<DescribedRoute, "bodyReader"> {
  readonly method: "GET" | "POST";
  /** `undefined` when there is nothing at this path after all. */
  handle(request: RawRequest): Promise<RawResponse | undefined>;
}

export function describeRawRoutes(routes: readonly RawRoute[]): DescribedRoute[] {
  return routes.map((route) => ({ ...route, bodyReader: "bytes" }));
}

export function installRawRoutes(app: FastifyInstance, callers: Callers, routes: readonly RawRoute[]): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, async (_request: unknown, body: Buffer) => body);
    for (const route of routes) {
      scope.route({
        method: route.method,
        url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
        onRequest: async (request) => {
          request.caller = await callers.identify(request, route.access);
        },
        handler: async (request, reply) => {
          const { pathname, searchParams } = new URL(request.url, "http://mailroom.invalid");
          const response = await route.handle({
            method: request.method,
            path: pathname,
            query: searchParams,
            headers: Object.fromEntries(
              Object.entries(request.headers).map(([name, value]) => [
                name,
                Array.isArray(value) ? value.join(", ") : value,
              ]),
            ),
            body: request.body instanceof Uint8Array ? request.body : new Uint8Array(),
            address: request.ip,
          });
          if (response === undefined) throw new HttpError("not_found", "Not Found");
          return reply.code(response.status).headers(response.headers).send(response.body);
        },
      });
    }
  });
}

/**
 * Serves routes that read the bytes of a request themselves: a signature over a body holds for its bytes. They share the
 * listener's authentication, limits and headers.
 */

import type { FastifyInstance } from "fastify";
import { MailroomError } from "../base/index.js";
import type { DescribedRoute, RawRoute } from "../extension/index.js";
import type { RequestAuthenticator } from "./authentication.js";

export function describeRawRoutes(routes: readonly RawRoute[]): DescribedRoute[] {
  return routes.map((route) => ({ ...route, bodyReader: "bytes" }));
}

export function installRawRoutes(
  app: FastifyInstance,
  callers: RequestAuthenticator,
  routes: readonly RawRoute[],
): void {
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
          if (response === undefined) throw new MailroomError("not_found", "Not Found");
          return reply.code(response.status).headers(response.headers).send(response.body);
        },
      });
    }
  });
}

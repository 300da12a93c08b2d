/** Serves the mounts of extensions behind the listener's authentication, limits and headers. */
import type { FastifyInstance } from "fastify";
import { instanceOf, type Principal } from "../auth/index.js";
import type { DescribedRoute, Mount } from "../extension/index.js";
import type { RequestAuthenticator } from "./authentication.js";
import type { HttpContext } from "./context.js";
import { takeReadingPlace } from "./reading.js";

export function describeMounts(mounts: readonly Mount[]): DescribedRoute[] {
  return mounts.flatMap(({ path, roles, operations }) =>
    operations.map((operation) => ({
      ...operation,
      path,
      access: { kind: "roles", roles, wrongRole: "forbidden" },
      bodyReader: "json",
      errors: ["overloaded", ...(operation.errors ?? [])],
    })),
  );
}

export function installMounts(
  app: FastifyInstance,
  context: HttpContext,
  callers: RequestAuthenticator,
  mounts: readonly Mount[],
): void {
  for (const mount of mounts) {
    const callersOf = new WeakMap<object, Principal>();
    app.route({
      method: mount.operations.map(({ method }) => method),
      url: mount.path,
      onRequest: async (request) => {
        const caller = await callers.principal(request, mount.roles);
        await mount.admit?.(caller);
        callersOf.set(request, caller);
      },
      handler: async (request, reply) => {
        const caller = callersOf.get(request);
        if (caller === undefined)
          throw new Error(`${mount.path}: no authenticated caller (check the roles of its mount)`);
        const instance = instanceOf(caller);
        const name = `${caller.role}:${caller.id}`;
        if (instance !== undefined) {
          context.recordCaller({ principal: caller, instance, name }, request.headers.authorization);
        }
        const leave = context.streams.take(name);
        const unwatch = context.revocations.watch(caller, request.headers.authorization, () =>
          reply.raw.destroy(),
        );
        let place: Promise<unknown> | undefined;
        reply.hijack();
        for (const [header, value] of Object.entries(reply.getHeaders())) {
          if (value !== undefined) reply.raw.setHeader(header, value);
        }
        try {
          // The SDKs of these protocols take a millisecond or more for each request.
          await context.turns.whole(name);
          await mount.handle({
            request: request.raw,
            response: reply.raw,
            caller,
            body: request.body,
            reading: async () => {
              place ??= takeReadingPlace(context, name, reply.raw);
              await place;
            },
            turn: async () => context.turns.whole(name),
          });
        } catch (error) {
          request.log.error({ err: error }, "a request failed");
          if (!reply.raw.headersSent) reply.raw.writeHead(500, { "content-type": "application/json" });
          reply.raw.end(JSON.stringify({ detail: "internal server error", code: "internal_error" }));
        } finally {
          unwatch();
          leave();
        }
        return reply;
      },
    });
  }
}

/**
 * Other doors (MCP, A2A) on the same listener: they speak a protocol of their own and write their answers themselves,
 * behind this door's authentication, limits and headers.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { instanceOf, type Principal, type Role } from "../auth/index.js";
import type { Callers } from "./callers.js";
import type { Door } from "./door.js";
import type { DescribedRoute } from "./route.js";

export interface MountedCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: Principal;
  /** The parsed body; `undefined` where there was none. */
  readonly body: unknown;
}

/** One method of a mount, as the document describes it. */
export type MountedOperation = Omit<DescribedRoute, "path" | "access" | "bodyReader">;

export interface Mount {
  readonly path: string;
  readonly operations: readonly MountedOperation[];
  /** Headers of its protocol, for browsers: those that they may send, and those of answers that they may read. */
  readonly headers?: { readonly sent: readonly string[]; readonly read: readonly string[] };
  /** Everybody else gets 403. */
  readonly roles: readonly Role[];
  /** A last word about the caller. @throws HttpError */
  admit?(caller: Principal): void;
  /** Writes the whole answer. Resolves when that is done. */
  handle(call: MountedCall): Promise<void>;
  /** Ends what is under way, when the server closes. */
  close?(): Promise<void>;
}

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
  door: Door,
  callers: Callers,
  mounts: readonly Mount[],
): void {
  for (const mount of mounts) {
    const callersOf = new WeakMap<object, Principal>();
    app.route({
      method: mount.operations.map(({ method }) => method),
      url: mount.path,
      onRequest: async (request) => {
        const caller = await callers.principal(request, mount.roles);
        mount.admit?.(caller);
        callersOf.set(request, caller);
      },
      handler: async (request, reply) => {
        const caller = callersOf.get(request);
        if (caller === undefined) throw new Error(`${mount.path} was reached by nobody`);
        const instance = instanceOf(caller);
        const name = `${caller.role}:${caller.id}`;
        if (instance !== undefined) {
          door.meet({ principal: caller, instance, name }, request.headers.authorization);
        }
        const leave = door.streams.take(name);
        const unwatch = door.revocations.watch(caller, () => reply.raw.destroy());
        reply.hijack();
        for (const [header, value] of Object.entries(reply.getHeaders())) {
          if (value !== undefined) reply.raw.setHeader(header, value);
        }
        try {
          await mount.handle({ request: request.raw, response: reply.raw, caller, body: request.body });
        } catch (error) {
          request.log.error({ err: error }, "a request failed");
          if (!reply.raw.headersSent) reply.raw.writeHead(500, { "content-type": "application/json" });
          reply.raw.end(JSON.stringify({ detail: "the server made a mistake", code: "internal_error" }));
        } finally {
          unwatch();
          leave();
        }
        return reply;
      },
    });
  }
}

/**
 * A route as data: who may call it, what it takes, what it answers, and the function that does it. The server, the
 * OpenAPI document and the generated tests are all made from the same list.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Principal, Role } from "../auth/index.js";
import type { InstanceId } from "../engine/ports.js";
import type { ErrorCode } from "./errors.js";
import type { Checker } from "./validation.js";

/** Somebody who is known and owns an instance. */
export interface Caller {
  readonly principal: Principal;
  readonly instance: InstanceId;
  /** `role:id`, to count by. */
  readonly name: string;
}

/**
 * Decisions D2: a wrong role is 401 `invalid role` on routes of the seed and 403 on ours. On `optional` routes a
 * caller is recognised, but nobody is turned away.
 */
export type Access =
  | { readonly kind: "public" }
  | { readonly kind: "optional" }
  | {
      readonly kind: "roles";
      readonly roles: readonly Role[];
      readonly wrongRole: "invalid_role" | "forbidden";
    };

export const PUBLIC: Access = { kind: "public" };
export const OPTIONAL: Access = { kind: "optional" };
/** Routes of the seed for users and admins. */
export const PERSONS: Access = { kind: "roles", roles: ["user", "admin"], wrongRole: "invalid_role" };
/** Routes of the seed for other swarms. */
export const PEERS: Access = { kind: "roles", roles: ["agent"], wrongRole: "invalid_role" };
export const ADMINS: Access = { kind: "roles", roles: ["admin"], wrongRole: "invalid_role" };
/** The same on routes of our own. */
export const OUR_PERSONS: Access = { kind: "roles", roles: ["user", "admin"], wrongRole: "forbidden" };
export const OUR_PEERS: Access = { kind: "roles", roles: ["agent"], wrongRole: "forbidden" };
export const OUR_ADMINS: Access = { kind: "roles", roles: ["admin"], wrongRole: "forbidden" };

export interface AnswerDescription {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** Beside JSON, or instead of it where there is no schema. */
  readonly contentType?: string;
}

/** What a handler hands back; `STREAMED` when it has written the answer itself. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Headers of an answer whose body is JSON text already. */
export const JSON_TEXT = { "content-type": "application/json; charset=utf-8" } as const;

export const STREAMED = Symbol("streamed");
export type Handled = Answer | typeof STREAMED;

export interface Call<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** What every kind of route says about itself. */
interface RouteFacts {
  readonly id: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** In the form of OpenAPI: `/tasks/{task_id}`. */
  readonly path: string;
  readonly tag: "server" | "messages" | "tasks" | "swarms" | "administration" | "agents" | "mesh";
  readonly summary: string;
  readonly description?: string;
  /** The protocol that is spoken there, where it is another than MAIL. */
  readonly protocol?: { readonly name: string; readonly url: string };
  readonly access: Access;
  /** Takes an `Idempotency-Key` (decisions D4). */
  readonly idempotent?: boolean;
  /** The body may be left out. */
  readonly bodyOptional?: boolean;
  readonly answers: Readonly<Record<number, AnswerDescription>>;
  /** Beyond those that every route of its kind can answer. */
  readonly errors?: readonly ErrorCode[];
}

interface Shapes<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

const NO_FIELDS = z.object({});
const NO_BODY = z.unknown();

/** For a route that takes nothing; what it does take is put over it. */
export const NOTHING = { params: NO_FIELDS, query: NO_FIELDS, body: NO_BODY } as const;

export function takesBody(route: DescribedRoute): boolean {
  return route.body !== NO_BODY;
}

/** The parts of a request before they were checked. */
export interface RawCall {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export type Handler = (raw: RawCall, caller: Caller | undefined) => Promise<Handled>;

/** What the document is made from. */
export interface DescribedRoute extends RouteFacts, Shapes<z.ZodType, z.ZodType, z.ZodType> {
  /** Headers of its protocol; whoever handles the route reads them. */
  readonly headers?: z.ZodType;
  /** Shown beside what `access` asks for, and checked by whoever handles the route. */
  readonly proof?: HeaderProof;
  /**
   * Who reads the body: the door checks it (the default), or whoever handles the route gets it, be it as JSON or as
   * bytes of any type.
   */
  readonly bodyReader?: "door" | "json" | "bytes";
}

/** A secret or a signature in a header. */
export interface HeaderProof {
  /** Its name in the document. */
  readonly scheme: string;
  readonly header: string;
  readonly description: string;
}

/** A route whose handler's types are known only where it was defined. */
export interface Route extends DescribedRoute {
  readonly prepare: (checker: Checker) => Handler;
}

type Typed<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = Call<
  z.output<P>,
  z.output<Q>,
  z.output<B>
>;

/** A route that anybody may call; a caller is handed over where one was recognised. */
export function definePublicRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(
  definition: RouteFacts &
    Shapes<P, Q, B> & {
      readonly handle: (call: Typed<P, Q, B>, caller: Caller | undefined) => Promise<Handled>;
    },
): Route {
  const { handle, ...facts } = definition;
  return {
    ...facts,
    prepare(checker) {
      const params = checker.for(definition.params, "path");
      const query = checker.for(definition.query, "query");
      const body = checker.for(definition.body, "body");
      const withoutBody = definition.bodyOptional === true ? {} : undefined;
      return ({ request, reply }, caller) =>
        handle(
          {
            params: params(request.params),
            query: query(request.query),
            body: body(request.body ?? withoutBody),
            request,
            reply,
          },
          caller,
        );
    },
  };
}

/** A route for callers of certain roles. */
export function defineRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(
  definition: RouteFacts &
    Shapes<P, Q, B> & { readonly handle: (call: Typed<P, Q, B>, caller: Caller) => Promise<Handled> },
): Route {
  const { handle, ...facts } = definition;
  return definePublicRoute({
    ...facts,
    handle(call, caller) {
      if (caller === undefined) throw new Error(`${definition.id} was reached by nobody`);
      return handle(call, caller);
    },
  });
}

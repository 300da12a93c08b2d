/**
 * A route as data: who may call it, what it takes, what it answers, and the function that handles it. The server, the
 * OpenAPI document and the generated tests are all made from the same list.
 */
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import type { Principal, Role } from "../auth/index.js";
import type { PublicErrorCode } from "../base/index.js";
import type { InstanceId, JournalLocation, MailEvent, RoundOutcome } from "../engine/index.js";
import type { RowWrite } from "../journal/index.js";
import type { Task } from "../library/index.js";
import type { WriteReference } from "../store/index.js";
import type { Logger } from "./logger.js";
import type { EventQuery } from "./schemas.js";
import type { EventStream, NextTurn, StreamEvent } from "./stream.js";

/** An authenticated principal that owns an instance. */
export interface Caller {
  readonly principal: Principal;
  readonly instance: InstanceId;
  /** `role:id`, the key of limits. */
  readonly name: string;
}

/**
 * A wrong role is 401 `invalid role` on routes of the specification and 403 on Mailroom's own (decision D2).
 * `optional` routes identify the caller and reject no one.
 */
export type Access =
  | { readonly kind: "public" }
  | { readonly kind: "optional" }
  | {
      readonly kind: "roles";
      readonly roles: readonly Role[];
      readonly wrongRole: "invalid_role" | "forbidden";
    };

/** Everyone may call the route, without a token. */
export const PUBLIC: Access = { kind: "public" };
export const OPTIONAL: Access = { kind: "optional" };
/** Routes of the specification. */
export const MAIL_USERS: Access = { kind: "roles", roles: ["user", "admin"], wrongRole: "invalid_role" };
export const MAIL_SWARMS: Access = { kind: "roles", roles: ["agent"], wrongRole: "invalid_role" };
export const MAIL_ADMINS: Access = { kind: "roles", roles: ["admin"], wrongRole: "invalid_role" };
/** Mailroom's own routes. */
export const USERS_AND_ADMINS: Access = { kind: "roles", roles: ["user", "admin"], wrongRole: "forbidden" };
export const SWARMS: Access = { kind: "roles", roles: ["agent"], wrongRole: "forbidden" };
/** Only admins may call the route; others get 403. */
export const ADMINS: Access = { kind: "roles", roles: ["admin"], wrongRole: "forbidden" };

export interface ResponseDescription {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** Beside JSON, or instead of it if there is no schema. */
  readonly contentType?: string;
}

/** The response of a route. */
export interface RouteResponse {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Headers of a response whose body is JSON text already. */
export const JSON_TEXT = { "content-type": "application/json; charset=utf-8" } as const;

/** The response has been written to the connection. */
export const STREAMED = Symbol("streamed");
export type RouteResult = RouteResponse | typeof STREAMED;

/** Makes the rows that store the result of a write under its idempotency key; without a key there are none. */
export type Remember = (reference: WriteReference) => readonly RowWrite[];

/** A message posted to a task, and the outcome of its round. */
export interface PostedRound extends JournalLocation {
  readonly outcome: Promise<RoundOutcome>;
}

/** How a caller waits for the end of a round. */
export interface Waiting {
  /** The events of the round as a stream. */
  readonly stream?: boolean | undefined;
  /** `false` responds as soon as the message is durable. */
  readonly wait?: boolean | undefined;
  /** Includes the task's events in the response. */
  readonly showEvents?: boolean | undefined;
  /** Seconds; the server's limit if absent. */
  readonly timeout?: number | undefined;
}

export interface RoundEnd {
  readonly taskId: string;
  /** Absent while the task is still running. */
  readonly outcome: RoundOutcome | undefined;
  readonly events: MailEvent[] | null;
}

export interface RoundOptions {
  readonly waiting: Waiting;
  readonly post: (rows: (at: JournalLocation) => readonly RowWrite[]) => Promise<PostedRound>;
  readonly respond: (end: RoundEnd) => RouteResponse;
}

/** Overrides what identifies a write under its idempotency key: by default the route's id, parameters and body. */
export interface WriteIdentity {
  readonly route?: string;
  readonly body?: unknown;
}

/** Where a task's events can be read and a stream can resume. */
export function eventsUrl(taskId: string): string {
  return `/tasks/${encodeURIComponent(taskId)}/events`;
}

/** What the listener does for a handler. No type of the HTTP framework is visible. */
export interface RouteRequest {
  readonly headers: IncomingHttpHeaders;
  /** Host and port as the client sees them. */
  readonly host: string;
  /** Whether the client speaks HTTPS, perhaps to a trusted proxy. */
  readonly secure: boolean;
  readonly log: Logger;
  /** The task that the request is about, for its log line. */
  taskKey: string | undefined;
  /**
   * Authenticates a bearer that did not come in the header, with the same limit on failed attempts.
   * @throws MailroomError 401, 429 or 503
   */
  authenticate(bearer: string): Promise<Principal>;
  /** Runs a write once per idempotency key. `write` knows its response before it commits, and stores it with the rest. */
  once(
    caller: Caller,
    write: (remember: Remember) => Promise<RouteResponse>,
    identity?: WriteIdentity,
  ): Promise<RouteResponse>;
  /** Posts to a task, once per idempotency key, and responds as `waiting` says. */
  round(caller: Caller, options: RoundOptions, identity?: WriteIdentity): Promise<RouteResult>;
  /**
   * Runs `work` in one of the slots for waiting requests. `wait` resolves with nothing when the server's time limit has passed,
   * the client disconnects or the server closes.
   */
  waiting<T>(
    caller: Caller,
    work: (wait: (outcome: Promise<RoundOutcome>) => Promise<RoundOutcome | undefined>) => Promise<T>,
  ): Promise<T>;
  /** A task's events: a stream if the client accepts one, otherwise a page of JSON. */
  taskEvents(caller: Caller, task: Task, query: z.output<typeof EventQuery>): Promise<RouteResult>;
  /**
   * Server-sent events, in one of the slots for streams. The stream ends with `work`, when the client leaves, when its
   * token is revoked, and when the server closes.
   */
  stream(
    caller: Caller,
    ping: () => StreamEvent,
    work: (stream: EventStream) => Promise<void>,
  ): Promise<RouteResult>;
  /**
   * Resolves when the caller may read contents of tasks, or search them: a few requests of one caller do so at once. The
   * request keeps its place until its response has been sent.
   * @throws MailroomError `overloaded` when too many wait
   */
  reading(caller: Caller): Promise<NextTurn>;
  /**
   * A large answer in pieces, sent while they are read. A caller has few places for such answers, and further ones wait.
   * An error of the first pieces is the answer.
   */
  pieces(
    caller: Caller,
    pieces: AsyncGenerator<string, void, undefined>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<RouteResponse>;
  /** A whole task as JSON, sent while it is read. */
  taskRecord(caller: Caller, task: Task): Promise<RouteResponse>;
  /** The caller's newest tasks as JSON by id, sent while they are read. */
  newestTasks(caller: Caller, limit: number): Promise<RouteResponse>;
}

/** What the handler of a route is called with. */
export interface RouteCall<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: RouteRequest;
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
  /** The protocol that the route speaks, if it is not MAIL. */
  readonly protocol?: { readonly name: string; readonly url: string };
  readonly access: Access;
  /** Takes an `Idempotency-Key` (decision D4). */
  readonly idempotent?: boolean;
  /** The body may be left out. */
  readonly bodyOptional?: boolean;
  readonly answers: Readonly<Record<number, ResponseDescription>>;
  /** Beyond those that every route of its kind can return. */
  readonly errors?: readonly PublicErrorCode[];
}

interface Shapes<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

const NO_FIELDS = z.object({});
const NO_BODY = z.unknown();

/** For a route that takes nothing; spread it first and override what the route does take. */
export const NO_INPUT = { params: NO_FIELDS, query: NO_FIELDS, body: NO_BODY } as const;

export function takesBody({ body }: Pick<DescribedRoute, "body">): boolean {
  return body !== NO_BODY;
}

/** The parts of a request before they are checked. */
export interface UncheckedCall {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  /** @param params the checked parameters; they and the body identify a write under its idempotency key */
  request(params: unknown, body: unknown): RouteRequest;
}

export type RouteHandler = (call: UncheckedCall, caller: Caller | undefined) => Promise<RouteResult>;

export type InputPart = "body" | "query" | "path";

/** Compiles schemas into checks that throw `bad_request` and name the field. */
export interface InputChecker {
  for<S extends z.ZodType>(schema: S, part: InputPart): (value: unknown) => z.output<S>;
}

/** What the OpenAPI document is made from. */
export interface DescribedRoute extends RouteFacts, Shapes<z.ZodType, z.ZodType, z.ZodType> {
  /** Headers of its protocol; the handler reads them. */
  readonly headers?: z.ZodType;
  /** Shown beside what `access` requires, and checked by the handler. */
  readonly proof?: HeaderProof;
  /** Who reads the body: the listener checks it (the default), or the handler gets it as JSON or as bytes. */
  readonly bodyReader?: "listener" | "json" | "bytes";
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
  readonly prepare: (checker: InputChecker) => RouteHandler;
}

type Typed<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = RouteCall<
  z.output<P>,
  z.output<Q>,
  z.output<B>
>;

/**
 * A route that anyone may call; the handler receives a caller if one was identified.
 * @example
 * definePublicRoute({
 *   ...NO_INPUT,
 *   id: "ping", method: "GET", path: "/ping", tag: "server", summary: "Answer",
 *   access: PUBLIC,
 *   answers: { 200: { description: "An answer." } },
 *   handle: async () => ({ status: 200, body: "pong" }),
 * });
 */
export function definePublicRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(
  definition: RouteFacts &
    Shapes<P, Q, B> & {
      readonly handle: (call: Typed<P, Q, B>, caller: Caller | undefined) => Promise<RouteResult>;
    },
): Route {
  const { handle, ...facts } = definition;
  return {
    ...facts,
    prepare(checker) {
      const checkParams = checker.for(definition.params, "path");
      const checkQuery = checker.for(definition.query, "query");
      const checkBody = checker.for(definition.body, "body");
      const withoutBody = definition.bodyOptional === true ? {} : undefined;
      return (call, caller) => {
        const params = checkParams(call.params);
        const query = checkQuery(call.query);
        const body = checkBody(call.body ?? withoutBody);
        const identity = takesBody(facts) ? body : undefined;
        return handle({ params, query, body, request: call.request(params, identity) }, caller);
      };
    },
  };
}

/**
 * A route for callers of certain roles.
 * @example
 * defineRoute({
 *   ...NO_INPUT,
 *   id: "whoIsThere", method: "GET", path: "/hello", tag: "server", summary: "Greet the caller",
 *   access: USERS_AND_ADMINS,
 *   answers: { 200: { description: "A greeting." } },
 *   handle: async (_call, caller) => ({ status: 200, body: { hello: caller.name } }),
 * });
 */
export function defineRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(
  definition: RouteFacts &
    Shapes<P, Q, B> & { readonly handle: (call: Typed<P, Q, B>, caller: Caller) => Promise<RouteResult> },
): Route {
  const { handle, ...facts } = definition;
  return definePublicRoute({
    ...facts,
    handle(call, caller) {
      if (caller === undefined)
        throw new Error(`${definition.id}: no authenticated caller (check its access)`);
      return handle(call, caller);
    },
  });
}

/** The request of a route that reads the bytes itself: a signature over a body holds for its bytes. */
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

/** The response of a raw route. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A route that gets the bytes of the body and checks them itself: signed webhooks, other protocols. */
export interface RawRoute extends Omit<DescribedRoute, "bodyReader"> {
  readonly method: "GET" | "POST";
  /** Resolves with nothing if nothing is served at this path. */
  handle(request: RawRequest): Promise<RawResponse | undefined>;
}

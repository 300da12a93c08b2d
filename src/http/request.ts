/** The listener's services for the handler of a route. */

import type { IncomingHttpHeaders } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Principal } from "../auth/index.js";
import { isRecord, MailroomError } from "../base/index.js";
import { onDisconnect } from "../base/node.js";
import type { RoundOutcome } from "../engine/index.js";
import type { EventQuery, EventStream, Logger, NextTurn, StreamEvent } from "../extension/index.js";
import {
  type Caller,
  eventsUrl,
  JSON_TEXT,
  type Remember,
  type RoundOptions,
  type RouteRequest,
  type RouteResponse,
  type RouteResult,
  STREAMED,
  type WriteIdentity,
} from "../extension/index.js";
import type { Task } from "../library/index.js";
import type { RequestAuthenticator } from "./authentication.js";
import type { HttpContext } from "./context.js";
import { REPLAYED, type WriteCall } from "./idempotent-writes.js";
import { type JsonStream, sendJsonStream } from "./json-stream.js";
import { takeReadingPlace } from "./reading.js";
import { SseStream } from "./sse.js";
import { eventPage, streamEvents, wantsStream } from "./task-events.js";
import { answerNewest, answerRecord, jsonWithEvents } from "./task-records.js";
import { streamTask } from "./task-stream.js";
import { waitFor } from "./wait.js";

/** Identifies the write that a request performs, for its idempotency key. */
interface RequestWrite {
  readonly route: string;
  readonly params: unknown;
  readonly body: unknown;
}

export interface HttpRequestParts {
  readonly context: HttpContext;
  readonly callers: RequestAuthenticator;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export class HttpRequest implements RouteRequest {
  readonly #context: HttpContext;
  readonly #callers: RequestAuthenticator;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #write: RequestWrite;

  constructor(parts: HttpRequestParts, write: RequestWrite) {
    this.#context = parts.context;
    this.#callers = parts.callers;
    this.#request = parts.request;
    this.#reply = parts.reply;
    this.#write = write;
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers;
  }

  get host(): string {
    return this.#request.host;
  }

  get secure(): boolean {
    return this.#request.protocol === "https";
  }

  get log(): Logger {
    return this.#request.log;
  }

  get taskKey(): string | undefined {
    return this.#request.taskKey;
  }

  set taskKey(key: string | undefined) {
    this.#request.taskKey = key;
  }

  authenticate(bearer: string): Promise<Principal> {
    return this.#callers.authenticate({
      headers: { authorization: `Bearer ${bearer}` },
      ip: this.#request.ip,
    });
  }

  once(
    caller: Caller,
    write: (remember: Remember) => Promise<RouteResponse>,
    identity?: WriteIdentity,
  ): Promise<RouteResponse> {
    return this.#context.writes.answer(this.#writeCall(caller, identity), write);
  }

  async round(caller: Caller, options: RoundOptions, identity?: WriteIdentity): Promise<RouteResult> {
    const { waiting, post, respond } = options;
    const { stream, wait } = waiting;
    if (stream === true && wait === false) {
      throw new MailroomError("bad_request", "stream and wait: false exclude each other", {
        details: { field: "wait" },
      });
    }
    const context = this.#context;
    context.recordCaller(caller, this.headers.authorization);
    // Acquire the slot before anything is written: a rejected request must change nothing.
    const slots = stream === true ? context.streams : context.waits;
    const release = wait === false ? () => {} : slots.take(caller.name);
    try {
      await context.writers.join();
      const write = this.#writeCall(caller, identity);
      const { result: posted, replayed } = await context.writes.round(write, post);
      const { key, taskId } = posted;
      this.taskKey = key;
      const headers = replayed ? REPLAYED : {};
      if (stream === true) {
        const sent = await streamTask({
          ...context.streaming,
          reply: this.#reply,
          caller,
          task: { id: taskId, key },
          // Everything from the posted message on (REF-8).
          after: `${posted.number - 1}`,
          end: { kind: "outcome", start: posted },
          headers: { location: `${eventsUrl(taskId)}?round=${posted.number}`, ...headers },
        });
        if (sent.ended === "too_slow") context.metrics.droppedListener();
        return STREAMED;
      }
      const outcome = wait === false ? undefined : await this.#wait(posted.outcome, waiting.timeout);
      const events = waiting.showEvents === true ? [] : null;
      const response = respond({ taskId, outcome, events });
      const answer = { ...response, headers: { ...response.headers, ...headers } };
      return events === null ? answer : await this.#withEvents(caller, taskId, answer);
    } finally {
      release();
    }
  }

  async waiting<T>(
    caller: Caller,
    work: (wait: (outcome: Promise<RoundOutcome>) => Promise<RoundOutcome | undefined>) => Promise<T>,
  ): Promise<T> {
    const release = this.#context.waits.take(caller.name);
    try {
      return await work((outcome) => this.#wait(outcome));
    } finally {
      release();
    }
  }

  taskEvents(caller: Caller, task: Task, query: z.output<typeof EventQuery>): Promise<RouteResult> {
    const wanted = { task, query, request: this.#request };
    return wantsStream(this.#request)
      ? streamEvents(this.#context, this.#reply, caller, wanted)
      : this.pieces(caller, eventPage(this.#context, wanted));
  }

  reading(caller: Caller): Promise<NextTurn> {
    return takeReadingPlace(this.#context, caller.name, this.#reply.raw);
  }

  async pieces(
    caller: Caller,
    pieces: JsonStream,
    headers: Readonly<Record<string, string>> = JSON_TEXT,
  ): Promise<RouteResponse> {
    const sent = await sendJsonStream(this.#context, this.#reply, caller.name, pieces);
    return { ...sent, headers };
  }

  async stream(
    caller: Caller,
    ping: () => StreamEvent,
    work: (stream: EventStream) => Promise<void>,
  ): Promise<RouteResult> {
    const context = this.#context;
    context.recordCaller(caller, this.headers.authorization);
    const { closing, revocations, limits, clock, heartbeat, memory } = context.streaming;
    const leave = context.streams.take(caller.name);
    try {
      const stream = new SseStream(this.#reply, { limits, clock, heartbeat, ping });
      const unlisten = closing.listen(() => stream.close());
      const unwatch = revocations.watch(caller.principal, this.headers.authorization, () => stream.close());
      try {
        const { signal } = stream;
        const { name } = caller;
        if (stream.ended === undefined)
          await work({
            signal,
            write: (text) => memory.text(name, signal, text, (whole) => stream.writeText(whole)),
            place: () => memory.page(name, signal),
            turn: async () => context.turns.whole(name),
          });
      } finally {
        unlisten();
        unwatch();
        stream.close();
      }
      if (stream.ended === "too_slow") context.metrics.droppedListener();
      return STREAMED;
    } finally {
      leave();
    }
  }

  taskRecord(caller: Caller, task: Task): Promise<RouteResponse> {
    return answerRecord(this.#context, this.#reply, caller, task);
  }

  newestTasks(caller: Caller, limit: number): Promise<RouteResponse> {
    return answerNewest(this.#context, this.#reply, caller, limit);
  }

  #writeCall(caller: Caller, { route, ...identity }: WriteIdentity = {}): WriteCall {
    const write = this.#write;
    return {
      key: this.headers["idempotency-key"],
      caller,
      route: route ?? write.route,
      params: write.params,
      body: "body" in identity ? identity.body : write.body,
    };
  }

  #wait(outcome: Promise<RoundOutcome>, seconds?: number): Promise<RoundOutcome | undefined> {
    const { clock, closing, options } = this.#context;
    return waitFor(outcome, {
      clock,
      ms: seconds === undefined ? options.server.waitTimeout : seconds * 1000,
      stopWhen: [(stop) => closing.listen(stop), (stop) => onDisconnect(this.#reply.raw, stop)],
    });
  }

  /** The answer with the task's events, sent while they are read. */
  async #withEvents(caller: Caller, taskId: string, answer: RouteResponse): Promise<RouteResponse> {
    const context = this.#context;
    const task = await context.mailroom.instance(caller.instance).requireTask(taskId);
    const pieces = jsonWithEvents(isRecord(answer.body) ? answer.body : {}, task);
    const { status, headers } = answer;
    const sent = await sendJsonStream(context, this.#reply, caller.name, pieces);
    return { status, body: sent.body, headers: { ...headers, ...sent.headers } };
  }
}

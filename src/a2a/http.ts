/** A2A's JSON-RPC over HTTP, streams included. Whoever calls was authenticated at the door already. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from "@a2a-js/sdk/server";
import { instanceOf, type Principal } from "../auth/index.js";
import type { Mailroom } from "../library/mailroom.js";
import { cardOf } from "./card.js";
import { failureOf, type Report } from "./failures.js";
import { A2aHandler } from "./handler.js";
import {
  A2A_VERSION_HEADER,
  type A2AError,
  formatSSEErrorEvent,
  formatSSEEvent,
  INTERNAL_ERROR,
  SSE_HEADERS,
} from "./sdk.js";
import { SentMessages } from "./sent-messages.js";
import type { A2aState } from "./state.js";

export interface A2aCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** A user or an admin: nobody else has tasks of their own. */
  readonly caller: Principal;
  readonly body: unknown;
}

export interface A2aHttpDoor {
  handle(call: A2aCall): Promise<void>;
  /** Lets everybody go; the tasks go on. */
  close(): Promise<void>;
}

export interface A2aHttpOptions {
  readonly mailroom: Mailroom;
  readonly state: A2aState;
  /** Where the caller reaches this door. */
  readonly url: (request: IncomingMessage) => string;
  /** Refuses contexts of callers that are not UUIDs (decisions A3). Default: no. */
  readonly strictIds?: boolean;
  /** Milliseconds that the reader of a stream may take no data before it is dropped. Default: 30 seconds. */
  readonly patience?: number;
  /** Told of mistakes of ours, of which callers learn nothing but that there was one. */
  readonly onError?: Report;
}

/** Milliseconds between two signs of life of a silent stream. */
const HEARTBEAT = 15_000;

export function createA2aHttpDoor(options: A2aHttpOptions): A2aHttpDoor {
  const { mailroom, state, url, strictIds = false, patience = 30_000, onError: report = () => {} } = options;
  const closing = new AbortController();
  const sent = new SentMessages(state);
  return {
    async handle({ request, response, caller, body }) {
      const instance = instanceOf(caller);
      if (instance === undefined) throw new Error(`role '${caller.role}' has no tasks`);
      const gone = new AbortController();
      // Who hung up while it was found out who they are is not heard to close any more.
      if (isGone(response)) gone.abort();
      else response.once("close", () => gone.abort());
      const signal = AbortSignal.any([closing.signal, gone.signal]);
      const card = cardOf(mailroom.swarm, { url: url(request) });
      const handler = new A2aHandler({ mailroom, instance, card, sent, signal, strictIds, report });
      const requestedVersion = headerOf(request, A2A_VERSION_HEADER);
      const context = new ServerCallContext({
        user: { isAuthenticated: true, userName: `${instance.role}:${instance.id}` },
        ...(requestedVersion !== undefined && { requestedVersion }),
      });
      const fail = (error: unknown) => failure(idOf(body), failureOf(error, report));
      try {
        validateVersion(context.requestedVersion, card, "JSONRPC");
        const rpc = isObject(body) ? body : "";
        const answer = await new JsonRpcTransportHandler(handler).handle(rpc, context);
        if (Symbol.asyncIterator in answer) await stream(response, answer, fail, patience);
        else send(response, withoutInsides(answer, fail));
      } catch (error) {
        send(response, fail(error));
      }
    },
    close: async () => closing.abort(),
  };
}

/** What goes wrong before the first event is an ordinary answer. */
async function stream(
  response: ServerResponse,
  events: AsyncGenerator<unknown, void, undefined>,
  fail: (error: unknown) => object,
  patience: number,
): Promise<void> {
  const first = await events.next();
  for (const [name, value] of Object.entries(SSE_HEADERS)) response.setHeader(name, value);
  response.writeHead(200);
  const heart = setInterval(() => response.write(": ping\n\n"), HEARTBEAT);
  try {
    if (first.done !== true) await write(response, formatSSEEvent(first.value), patience);
    for await (const event of events) await write(response, formatSSEEvent(event), patience);
  } catch (error) {
    if (!response.destroyed) response.write(formatSSEErrorEvent(fail(error)));
  } finally {
    clearInterval(heart);
    response.end();
  }
}

/** Waits until there is room, so that a slow reader costs no memory; one that stands still is let go. */
async function write(response: ServerResponse, text: string, patience: number): Promise<void> {
  if (response.write(text) || isGone(response)) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      response.off("drain", done).off("close", done);
      resolve();
    };
    const timer = setTimeout(() => response.destroy(), patience);
    response.once("drain", done).once("close", done);
  });
}

function isGone(response: ServerResponse): boolean {
  if (response.destroyed) return true;
  // Over HTTP/2 it is the stream that says so.
  const stream = "stream" in response ? response.stream : undefined;
  return isObject(stream) && stream.destroyed === true;
}

/** What the SDK itself makes of a failure repeats its message. It has no details: those of known errors have. */
function withoutInsides(answer: object, fail: (error: unknown) => object): object {
  const error = "error" in answer && isObject(answer.error) ? answer.error : undefined;
  if (error?.code !== INTERNAL_ERROR || error.data !== undefined) return answer;
  return fail(new Error(String(error.message)));
}

function send(response: ServerResponse, answer: unknown): void {
  if (response.destroyed) return;
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
}

function failure(id: string | number | null, error: A2AError) {
  return { jsonrpc: "2.0", id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name.toLowerCase()];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function idOf(body: unknown): string | number | null {
  const id = isObject(body) ? body.id : null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A2A's JSON-RPC over HTTP, streams included. Whoever calls was authenticated at the door already. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from "@a2a-js/sdk/server";
import { instanceOf, type Principal } from "../auth/index.js";
import type { Mailroom } from "../library/mailroom.js";
import { cardOf } from "./card.js";
import { A2aHandler } from "./handler.js";
import { A2A_VERSION_HEADER, formatSSEErrorEvent, formatSSEEvent, SSE_HEADERS } from "./sdk.js";
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

/** Milliseconds between two signs of life of a silent stream. */
const HEARTBEAT = 15_000;

export function createA2aHttpDoor(
  mailroom: Mailroom,
  state: A2aState,
  url: (request: IncomingMessage) => string,
): A2aHttpDoor {
  const closing = new AbortController();
  const sent = new SentMessages(state);
  return {
    async handle({ request, response, caller, body }) {
      const instance = instanceOf(caller);
      if (instance === undefined) throw new Error(`role '${caller.role}' has no tasks`);
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      const signal = AbortSignal.any([closing.signal, gone.signal]);
      const card = cardOf(mailroom.swarm, { url: url(request) });
      const handler = new A2aHandler({ mailroom, instance, card, sent, signal });
      const requestedVersion = headerOf(request, A2A_VERSION_HEADER);
      const context = new ServerCallContext({
        user: { isAuthenticated: true, userName: `${instance.role}:${instance.id}` },
        ...(requestedVersion !== undefined && { requestedVersion }),
      });
      try {
        validateVersion(context.requestedVersion, card, "JSONRPC");
        const rpc = isObject(body) ? body : "";
        const answer = await new JsonRpcTransportHandler(handler).handle(rpc, context);
        if (Symbol.asyncIterator in answer) await stream(response, answer, idOf(body));
        else send(response, answer);
      } catch (error) {
        send(response, failure(idOf(body), error));
      }
    },
    close: async () => closing.abort(),
  };
}

/** What goes wrong before the first event is an ordinary answer. */
async function stream(
  response: ServerResponse,
  events: AsyncGenerator<unknown, void, undefined>,
  id: string | number | null,
): Promise<void> {
  const first = await events.next();
  for (const [name, value] of Object.entries(SSE_HEADERS)) response.setHeader(name, value);
  response.writeHead(200);
  const heart = setInterval(() => response.write(": ping\n\n"), HEARTBEAT);
  try {
    if (first.done !== true) await write(response, formatSSEEvent(first.value));
    for await (const event of events) await write(response, formatSSEEvent(event));
  } catch (error) {
    if (!response.destroyed) response.write(formatSSEErrorEvent(failure(id, error)));
  } finally {
    clearInterval(heart);
    response.end();
  }
}

/** Waits until there is room, so that a slow reader costs no memory. */
async function write(response: ServerResponse, text: string): Promise<void> {
  if (response.write(text) || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

function send(response: ServerResponse, answer: unknown): void {
  if (response.destroyed) return;
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
}

function failure(id: string | number | null, error: unknown) {
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

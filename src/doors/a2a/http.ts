/** A2A's JSON-RPC over HTTP, including streams. The listener has already authenticated the caller. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from "@a2a-js/sdk/server";
import { instanceOf, type Principal } from "../../auth/index.js";
import { isRecord, Semaphore, systemClock } from "../../base/index.js";
import { onDisconnect, SseWriter } from "../../base/node.js";
import { AnswersForOthers, type NextTurn } from "../../extension/index.js";
import type { Mailroom } from "../../library/index.js";
import type { A2aStore } from "../../store/index.js";
import { cardOf } from "./card.js";
import { failureOf, type Report } from "./failures.js";
import { A2aHandler } from "./handler.js";
import {
  A2A_VERSION_HEADER,
  type A2AError,
  formatSSEErrorEvent,
  formatSSEEvent,
  INTERNAL_ERROR,
  isLegacyJsonRpcMethod,
  LegacyJsonRpcTransportHandler,
  RequestMalformedError,
  SSE_HEADERS,
} from "./sdk.js";
import { SentMessages } from "./sent-messages.js";

export interface A2aCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** A user or admin: other roles own no tasks. */
  readonly caller: Principal;
  readonly body: unknown;
  /** Resolves when the caller may read contents of tasks. */
  reading(): Promise<void>;
  /** Waits for the next turn of the caller. */
  readonly turn: NextTurn;
}

export interface A2aHttpDoor {
  handle(call: A2aCall): Promise<void>;
  /** Ends all calls and streams. The tasks continue. */
  close(): Promise<void>;
}

export interface A2aHttpOptions {
  readonly mailroom: Mailroom;
  readonly state: A2aStore;
  /** URL of this endpoint for callers. */
  readonly url: (request: IncomingMessage) => string;
  /** Rejects caller-chosen context ids that are not UUIDs (decision A3). Default: false. */
  readonly strictIds?: boolean;
  /** Lets admins answer for the owners of tasks. Default: false. */
  readonly adminsActForOwners?: boolean;
  /** Milliseconds without progress before a slow reader is disconnected. Default: 30 seconds. */
  readonly patience?: number;
  /** Receives internal errors. Callers see only that one occurred. */
  readonly onError?: Report;
}

/** Milliseconds between heartbeats of an idle stream. */
const HEARTBEAT = 15_000;
/** Journals that are read at once for one caller. */
const READS_PER_CALLER = 2;

export function createA2aHttpDoor(options: A2aHttpOptions): A2aHttpDoor {
  const { mailroom, state, url, strictIds = false, patience = 30_000, onError: report = () => {} } = options;
  const { adminsActForOwners = false } = options;
  const answers = new AnswersForOthers(mailroom, { adminsActForOwners });
  const closing = new AbortController();
  const sent = new SentMessages(state);
  const reads = new Semaphore({ perKey: READS_PER_CALLER });
  return {
    async handle({ request, response, caller, body, reading, turn }) {
      const instance = instanceOf(caller);
      if (instance === undefined) throw new Error(`role '${caller.role}' has no tasks`);
      const gone = new AbortController();
      onDisconnect(response, () => gone.abort());
      const signal = AbortSignal.any([closing.signal, gone.signal]);
      const card = cardOf(mailroom.swarm, { url: url(request) });
      const parts = { mailroom, instance, card, sent, answers, signal, strictIds, report };
      const handler = new A2aHandler({ ...parts, turn, reads });
      const requestedVersion = headerOf(request, A2A_VERSION_HEADER);
      const context = new ServerCallContext({
        user: { isAuthenticated: true, userName: `${instance.role}:${instance.id}` },
        ...(requestedVersion !== undefined && { requestedVersion }),
      });
      const isLegacy = isRecord(body) && isLegacyJsonRpcMethod(body.method);
      const Transport = isLegacy ? LegacyJsonRpcTransportHandler : JsonRpcTransportHandler;
      const fail = (error: unknown) => failure(idOf(body), failureOf(error, report), isLegacy);
      try {
        validateVersion(context.requestedVersion, card, "JSONRPC");
        const rpc = isRecord(body) ? body : "";
        if (isRecord(body)) checkLists(body.params, "params");
        if (isRecord(body) && READS.has(body.method)) await reading();
        const answer = await new Transport(handler).handle(rpc, context);
        if (Symbol.asyncIterator in answer) await stream(response, answer, fail, patience);
        else send(response, withoutInternals(answer, fail));
      } catch (error) {
        send(response, fail(error));
      }
    },
    close: async () => closing.abort(),
  };
}

/** Methods whose work is to read journals, also by their names in version 0.3. */
const READS: ReadonlySet<unknown> = new Set(["GetTask", "ListTasks", "tasks/get"]);

/** Fields with any JSON, which the SDK does not read. */
const FREE_FIELDS = new Set(["data", "metadata"]);

/** The SDK fails on null in a list, as if that were an internal error. @throws RequestMalformedError */
function checkLists(value: unknown, path: string): void {
  if (Array.isArray(value)) {
    const at = value.indexOf(null);
    if (at >= 0) throw new RequestMalformedError(`${path}[${at}] must not be null`);
    for (const [index, item] of value.entries()) checkLists(item, `${path}[${index}]`);
  } else if (isRecord(value)) {
    for (const [name, part] of Object.entries(value))
      if (!FREE_FIELDS.has(name)) checkLists(part, `${path}.${name}`);
  }
}

/** An error before the first event is an ordinary response. */
async function stream(
  response: ServerResponse,
  events: AsyncGenerator<unknown, void, undefined>,
  fail: (error: unknown) => object,
  patience: number,
): Promise<void> {
  const first = await events.next();
  for (const [name, value] of Object.entries(SSE_HEADERS)) response.setHeader(name, value);
  response.writeHead(200);
  const writer = new SseWriter(response, {
    clock: systemClock,
    heartbeat: HEARTBEAT,
    ping: () => ": ping\n\n",
    maxBuffered: 0,
    patience,
  });
  try {
    if (first.done !== true) await writer.send(formatSSEEvent(first.value));
    for await (const event of events) await writer.send(formatSSEEvent(event));
  } catch (error) {
    await writer.send(formatSSEErrorEvent(fail(error)));
  } finally {
    writer.end();
  }
}

/** The SDK's own conversion would expose the message of an internal error. Known errors have details. */
function withoutInternals(answer: object, fail: (error: unknown) => object): object {
  const error = "error" in answer && isRecord(answer.error) ? answer.error : undefined;
  if (error?.code !== INTERNAL_ERROR || error.data !== undefined) return answer;
  return fail(new Error(String(error.message)));
}

function send(response: ServerResponse, answer: unknown): void {
  if (response.destroyed) return;
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
}

function failure(id: string | number | null, error: A2AError, isLegacy: boolean) {
  const mapped = isLegacy
    ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
    : JsonRpcTransportHandler.mapToJSONRPCError(error);
  return { jsonrpc: "2.0", id, error: mapped };
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name.toLowerCase()];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function idOf(body: unknown): string | number | null {
  const id = isRecord(body) ? body.id : null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

/**
 * Sends JSON that is generated in pieces. A small response is sent as usual; a large one is written while it is
 * generated, at the reader's speed, and never held in memory as a whole.
 */
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { MailroomError } from "../base/index.js";
import { onDisconnect } from "../base/node.js";
import { JSON_TEXT, type NextTurn, type RouteResponse } from "../extension/index.js";
import type { HttpContext } from "./context.js";

/**
 * Shorter responses are sent at once. Others are sent in chunks of this size, which the reader must consume in time.
 */
const CHUNK = 64 * 1024;
/** Milliseconds of work before yielding to other requests. */
const SLICE = 10;

export type JsonStream = AsyncGenerator<string, void, undefined>;

/**
 * Waits for one of the caller's places, and holds it until the response is complete or abandoned.
 * @throws any error of the first pieces
 */
export async function sendJsonStream(
  context: HttpContext,
  reply: FastifyReply,
  caller: string,
  pieces: JsonStream,
): Promise<RouteResponse> {
  const release = await context.wholeTasks.take(caller);
  const chunks = inChunks(pieces, async () => context.turns.whole(caller));
  let gone = false;
  // The client may have left while the request waited for its place.
  onDisconnect(reply.raw, () => {
    gone = true;
  })();
  try {
    if (gone) throw new MailroomError("closed", "the client has left");
    const { value: first = "" } = await chunks.next();
    if (first.length < CHUNK) {
      release();
      return { status: 200, headers: JSON_TEXT, body: first };
    }
    const { clock, limits } = context;
    const dropSlow = () =>
      clock.after(limits.streamStallTimeout, () => {
        context.metrics.droppedListener();
        reply.raw.destroy();
      });
    const body = Readable.from(patiently(first, chunks, dropSlow));
    body.once("close", release);
    onDisconnect(reply.raw, () => body.destroy());
    return { status: 200, headers: JSON_TEXT, body };
  } catch (error) {
    release();
    throw error;
  }
}

/** Combines pieces into chunks. */
async function* inChunks(pieces: JsonStream, nextTurn: NextTurn): JsonStream {
  let text = "";
  let began = performance.now();
  for await (const piece of pieces) {
    text += piece;
    if (text.length >= CHUNK) {
      yield text;
      text = "";
    }
    if (performance.now() - began > SLICE) {
      await nextTurn();
      began = performance.now();
    }
  }
  if (text !== "") yield text;
}

async function* patiently(
  first: string,
  rest: JsonStream,
  startTimer: () => () => void,
): AsyncGenerator<Buffer, void, undefined> {
  for (
    let text: string | undefined = first;
    text !== undefined;
    text = (await rest.next()).value ?? undefined
  ) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += CHUNK) {
      const stopTimer = startTimer();
      try {
        yield bytes.subarray(at, at + CHUNK);
      } finally {
        stopTimer();
      }
    }
  }
}

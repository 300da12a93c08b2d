/**
 * JSON that is made piece by piece. What is small is answered like everything else; what is large is written while it is
 * made, as fast as the other side reads it, and never held as a whole.
 */
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { Door } from "./door.js";
import { whenGone } from "./gone.js";
import { type Answer, JSON_TEXT } from "./route.js";

/** What is shorter is sent as a whole. Of the rest a reader gets so many bytes at once, and must take them in time. */
const CHUNK = 64 * 1024;
/** Milliseconds of work after which others get their turn. */
const SLICE = 10;

export type Pieces = AsyncGenerator<string, void, undefined>;

/**
 * @param release called when the answer is complete or given up, whichever comes first
 * @throws whatever making the first pieces throws
 */
export async function answerPieces(
  door: Door,
  reply: FastifyReply,
  pieces: Pieces,
  release: () => void,
): Promise<Answer> {
  const chunks = inChunks(pieces);
  try {
    const { value: first = "" } = await chunks.next();
    if (first.length < CHUNK) {
      release();
      return { status: 200, headers: JSON_TEXT, body: first };
    }
    const { clock, limits } = door;
    const dropSlow = () =>
      clock.after(limits.listenerPatience, () => {
        door.metrics.droppedListener();
        reply.raw.destroy();
      });
    const body = Readable.from(patiently(first, chunks, dropSlow));
    body.once("close", release);
    whenGone(reply.raw, () => body.destroy());
    return { status: 200, headers: JSON_TEXT, body };
  } catch (error) {
    release();
    throw error;
  }
}

/** Pieces gathered until they are worth sending. */
async function* inChunks(pieces: Pieces): Pieces {
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
  rest: Pieces,
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

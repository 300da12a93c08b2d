/**
 * Limits the bytes of request bodies that are being received, for one caller and in total. A limit per request is not
 * enough, because a caller can send many at once. Beyond it, bodies wait unread, and a body that arrives too slowly loses
 * its connection, so that it cannot keep the others waiting.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Clock, MailroomError, Semaphore } from "../base/index.js";
import type { HttpLimits } from "./settings.js";

/** Smaller bodies do not count. */
const SMALL = 16 * 1024;
const MB = 1024 * 1024;
/** Milliseconds for each MB of a body. */
const TIME_PER_MB = 30_000;

type BodyLimits = Pick<HttpLimits, "body" | "bodies" | "bodiesPerCaller">;

export function limitBodies(app: FastifyInstance, limits: BodyLimits, clock: Clock): void {
  const { body: longest, bodies, bodiesPerCaller } = limits;
  const memory = new Semaphore({ limit: bodies, perKey: bodiesPerCaller });
  app.addHook("preParsing", (request, _reply, _payload, done) => {
    const size = Math.min(expectedSize(request, longest), bodies, bodiesPerCaller);
    if (size < SMALL) return done();
    const { raw } = request;
    const gone = new AbortController();
    raw.once("close", () => gone.abort());
    memory.acquire(ownerOf(request), { weight: size, signal: gone.signal }).then(
      (release) => {
        const stopTimer = clock.after(TIME_PER_MB * Math.ceil(size / MB), () => raw.socket.destroy());
        const end = () => {
          stopTimer();
          release();
        };
        raw.once("end", end);
        raw.once("close", end);
        if (raw.destroyed) end();
        done();
      },
      // The client has left.
      () => done(new MailroomError("closed", "the client has left")),
    );
  });
}

/** A body without a length may become as long as the limit. */
function expectedSize({ headers }: FastifyRequest, longest: number): number {
  const length = headers["content-length"];
  if (length !== undefined) return Math.min(Number(length) || 0, longest);
  return headers["transfer-encoding"] === undefined ? 0 : longest;
}

function ownerOf({ principal, ip }: FastifyRequest): string {
  return principal === undefined ? `address:${ip}` : `${principal.role}:${principal.id}`;
}

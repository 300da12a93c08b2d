/**
 * Limits the bytes of request bodies that are being received, for one caller and in total. A limit per request is not
 * enough, because a caller can send many at once. Beyond it, bodies wait unread. A body that arrives too slowly loses its
 * connection, and while others wait for its place it does so within seconds.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Clock, MailroomError, Semaphore } from "../base/index.js";
import type { HttpLimits } from "./settings.js";

/** Smaller bodies do not count. */
const SMALL = 16 * 1024;
const MB = 1024 * 1024;
/** Milliseconds for each MB of a body. */
const TIME_PER_MB = 30_000;
/** Milliseconds between two looks at the bodies that others wait for. */
const REVIEW = 1_000;

type BodyLimits = Pick<HttpLimits, "body" | "bodies" | "bodiesPerCaller">;

interface Body {
  readonly owner: string;
  readonly size: number;
}

interface ReceivedBody extends Body {
  readonly socket: FastifyRequest["raw"]["socket"];
  /** Bytes that the connection had received at the last look. */
  seen: number;
  /** Whether it was too slow then. One look is not enough: the server itself may have been busy. */
  slow: boolean;
}

export function limitBodies(app: FastifyInstance, limits: BodyLimits, clock: Clock): void {
  const { body: longest, bodies, bodiesPerCaller } = limits;
  const bodyMemory = new BodyMemory(bodies, bodiesPerCaller, clock);
  app.addHook("preParsing", (request, _reply, _payload, done) => {
    const size = Math.min(expectedSize(request, longest), bodies, bodiesPerCaller);
    if (size < SMALL) return done();
    const { raw } = request;
    const gone = new AbortController();
    raw.once("close", () => gone.abort());
    bodyMemory.admit(raw.socket, { owner: ownerOf(request), size }, gone.signal).then(
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

class BodyMemory {
  readonly #limit: number;
  readonly #memory: Semaphore;
  readonly #clock: Clock;
  readonly #waiting = new Set<Body>();
  readonly #received = new Set<ReceivedBody>();
  #reviewing = false;

  constructor(limit: number, perCaller: number, clock: Clock) {
    this.#limit = limit;
    this.#memory = new Semaphore({ limit, perKey: perCaller });
    this.#clock = clock;
  }

  /** Resolves when the body has a place. Returns a function that frees it. @throws the signal's reason */
  async admit(socket: ReceivedBody["socket"], body: Body, signal: AbortSignal): Promise<() => void> {
    const { owner, size } = body;
    this.#waiting.add(body);
    this.#reviewLater();
    let release: () => void;
    try {
      release = await this.#memory.acquire(owner, { weight: size, signal });
    } finally {
      this.#waiting.delete(body);
    }
    const received: ReceivedBody = { owner, size, socket, seen: socket.bytesRead, slow: false };
    this.#received.add(received);
    return () => {
      this.#received.delete(received);
      release();
    };
  }

  #reviewLater(): void {
    if (this.#reviewing) return;
    this.#reviewing = true;
    this.#clock.after(REVIEW, () => {
      this.#reviewing = false;
      if (this.#waiting.size === 0) return;
      this.#review();
      this.#reviewLater();
    });
  }

  /** Closes the connections of bodies that others wait for and that are too slow. */
  #review(): void {
    const owners = new Set(Array.from(this.#waiting, ({ owner }) => owner));
    const isFull = Array.from(this.#waiting).some(({ size }) => this.#memory.inUse + size > this.#limit);
    for (const body of [...this.#received]) {
      const { socket, owner, seen, slow } = body;
      body.slow = socket.bytesRead - seen < (MB * REVIEW) / TIME_PER_MB;
      body.seen = socket.bytesRead;
      if (slow && body.slow && (isFull || owners.has(owner))) socket.destroy();
    }
  }
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

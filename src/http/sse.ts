/**
 * Server-sent events on the raw response. Lines end with CRLF as the reference's do (mail.md 5.4). What is written
 * waits in the socket's buffer when the other side is slow, so the buffer is watched: a listener that does not keep
 * up is dropped and may come back with the id of the last event it saw (law 7).
 */
import type { FastifyReply } from "fastify";
import type { Clock } from "../engine/ports.js";
import { whenGone } from "./gone.js";

export interface SseEvent {
  /** Absent on what cannot be replayed: heartbeats and unfinished text. */
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

export interface SseLimits {
  readonly listenerBuffer: number;
  readonly listenerPatience: number;
}

export interface SseOptions {
  readonly limits: SseLimits;
  readonly clock: Clock;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds of silence after which `ping` makes a heartbeat. */
  readonly heartbeat: number;
  readonly ping: () => SseEvent;
}

export type SseEnd = "closed" | "disconnected" | "too_slow";

export class SseStream {
  readonly #raw: FastifyReply["raw"];
  readonly #limits: SseLimits;
  readonly #clock: Clock;
  readonly #options: SseOptions;
  readonly #gone = new AbortController();
  #end: SseEnd | undefined;
  #cancelPing: () => void = () => {};
  #quietSince: number;

  /** Takes the reply over and sends the head of the answer. */
  constructor(reply: FastifyReply, options: SseOptions) {
    this.#options = options;
    this.#limits = options.limits;
    this.#clock = options.clock;
    this.#quietSince = options.clock.now();
    reply.hijack();
    this.#raw = reply.raw;
    const http1 = reply.request.raw.httpVersionMajor < 2;
    reply.raw.writeHead(200, {
      ...definedHeaders(reply),
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      // Connection headers do not exist in HTTP/2 (decisions D3).
      ...(http1 && { connection: "keep-alive" }),
      "x-accel-buffering": "no",
      ...options.headers,
    });
    reply.raw.flushHeaders();
    reply.raw.on("error", () => this.#finish("disconnected"));
    whenGone(reply.raw, () => this.#finish("disconnected"));
    if (this.#end === undefined) this.#armPing();
  }

  /** Fires when there is nobody to write to any more, for whatever reason. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get ended(): SseEnd | undefined {
    return this.#end;
  }

  /** Writes an event and, when the buffer is full, waits until the other side has taken some of it. */
  async write(event: SseEvent): Promise<void> {
    if (this.#end !== undefined) return;
    if (!this.#push(event) && this.#waiting() > this.#limits.listenerBuffer) await this.#drained();
  }

  /** Writes what is worth nothing later; a listener whose buffer is full is dropped. */
  writeNow(event: SseEvent): void {
    if (this.#end !== undefined) return;
    this.#push(event);
    if (this.#waiting() > this.#limits.listenerBuffer) this.#drop();
  }

  close(): void {
    if (this.#end !== undefined) return;
    this.#finish("closed");
    this.#raw.end();
  }

  #push(event: SseEvent): boolean {
    this.#quietSince = this.#clock.now();
    return this.#raw.write(formatSse(event));
  }

  #waiting(): number {
    return this.#raw.writableLength;
  }

  async #drained(): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(this.#limits.listenerPatience, () => {
        this.#drop();
        done();
      });
      const done = () => {
        cancel();
        this.#raw.off("drain", done);
        this.signal.removeEventListener("abort", done);
        resolve();
      };
      this.#raw.once("drain", done);
      this.signal.addEventListener("abort", done, { once: true });
    });
  }

  #drop(): void {
    if (this.#end !== undefined) return;
    this.#finish("too_slow");
    this.#raw.destroy();
  }

  #finish(end: SseEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#cancelPing();
    this.#gone.abort();
  }

  /** One timer per stream: it looks how long the stream was silent instead of being set anew with every event. */
  #armPing(): void {
    const { heartbeat, ping } = this.#options;
    const silence = this.#clock.now() - this.#quietSince;
    this.#cancelPing = this.#clock.after(Math.max(1, heartbeat - silence), () => {
      if (this.#end !== undefined) return;
      if (this.#clock.now() - this.#quietSince >= heartbeat) this.writeNow(ping());
      if (this.#end === undefined) this.#armPing();
    });
  }
}

export function formatSse({ id, event, data }: SseEvent): string {
  const idLine = id === undefined ? "" : `id: ${id}\r\n`;
  // JSON text has no raw line breaks, so one data line holds it.
  return `event: ${event}\r\n${idLine}data: ${JSON.stringify(data)}\r\n\r\n`;
}

function definedHeaders(reply: FastifyReply): Record<string, number | string | string[]> {
  const headers: Record<string, number | string | string[]> = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

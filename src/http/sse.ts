/**
 * Server-sent events on the raw response. Lines end with CRLF, as in the reference (REF-8). Unread events wait in the
 * socket's buffer, so its size is checked: a client that does not keep up is disconnected and may resume with the id
 * of the last event it received (law 8).
 */
import type { FastifyReply } from "fastify";
import type { Clock } from "../base/index.js";
import { type SseEnd, SseWriter } from "../base/node.js";
import { formatEvent, type StreamEvent } from "../extension/index.js";

export interface SseLimits {
  readonly streamBuffer: number;
  readonly streamStallTimeout: number;
}

export interface SseOptions {
  readonly limits: SseLimits;
  readonly clock: Clock;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds of silence before a `ping` heartbeat. */
  readonly heartbeat: number;
  readonly ping: () => StreamEvent;
}

export class SseStream {
  readonly #writer: SseWriter;

  /** Takes over the reply and sends the head of the response. */
  constructor(reply: FastifyReply, { limits, clock, headers, heartbeat, ping }: SseOptions) {
    reply.hijack();
    const http1 = reply.request.raw.httpVersionMajor < 2;
    reply.raw.writeHead(200, {
      ...definedHeaders(reply),
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      // HTTP/2 has no connection headers (decision D3).
      ...(http1 && { connection: "keep-alive" }),
      "x-accel-buffering": "no",
      ...headers,
    });
    reply.raw.flushHeaders();
    this.#writer = new SseWriter(reply.raw, {
      clock,
      heartbeat,
      ping: () => formatEvent(ping()),
      maxBuffered: limits.streamBuffer,
      patience: limits.streamStallTimeout,
    });
  }

  /** Aborts when the stream can no longer be written, for any reason. */
  get signal(): AbortSignal {
    return this.#writer.signal;
  }

  get ended(): SseEnd | undefined {
    return this.#writer.ended;
  }

  /** Whether the reader has not taken what was sent last. */
  get isBehind(): boolean {
    return this.#writer.isBehind;
  }

  /** Whether so much waits for the reader that nothing more is written. */
  get isFull(): boolean {
    return this.#writer.isFull;
  }

  /** Writes an event and waits while the buffer is full. */
  write(event: StreamEvent): Promise<void> {
    return this.#writer.send(formatEvent(event));
  }

  /** The same for the text of any number of events. */
  writeText(text: string | Uint8Array): Promise<void> {
    return this.#writer.send(text);
  }

  /** Writes an event of temporary value, for callers that send nothing while the reader is behind. */
  offer(event: StreamEvent): void {
    this.#writer.offer(formatEvent(event));
  }

  close(): void {
    this.#writer.end();
  }
}

function definedHeaders(reply: FastifyReply): Record<string, number | string | string[]> {
  const headers: Record<string, number | string | string[]> = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

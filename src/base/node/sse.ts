import type { ServerResponse } from "node:http";
import type { Clock } from "../time.js";

/** Calls back when the other side disconnects; at once if it has. The returned function removes the callback. */
export function onDisconnect(response: ServerResponse, callback: () => void): () => void {
  // `close` has already fired if the client disconnected before this call.
  if (isDisconnected(response)) {
    callback();
    return () => {};
  }
  response.once("close", callback);
  return () => response.off("close", callback);
}

function isDisconnected(response: ServerResponse): boolean {
  if (response.destroyed) return true;
  // Over HTTP/2 only the stream says so.
  const stream = "stream" in response ? response.stream : undefined;
  return typeof stream === "object" && stream !== null && "destroyed" in stream && stream.destroyed === true;
}

export type SseEnd = "closed" | "disconnected" | "too_slow";

export interface SseOptions {
  readonly clock: Clock;
  /** Milliseconds of silence after which `ping` is sent. */
  readonly heartbeat: number;
  readonly ping: () => string;
  /** Bytes that may wait for the reader. */
  readonly maxBuffered: number;
  /** Milliseconds for which a reader whose buffer is full may take nothing before it is disconnected. */
  readonly patience: number;
}

/**
 * Server-sent events on a response whose head has been written. Unread events wait in the socket's buffer, which is
 * bounded: a reader that does not keep up is disconnected, and may resume (law 8).
 */
export class SseWriter {
  readonly #response: ServerResponse;
  readonly #options: SseOptions;
  readonly #ended = new AbortController();
  #end: SseEnd | undefined;
  #cancelPing: () => void = () => {};
  #silentSince: number;

  constructor(response: ServerResponse, options: SseOptions) {
    this.#response = response;
    this.#options = options;
    this.#silentSince = options.clock.now();
    response.on("error", () => this.#finish("disconnected"));
    onDisconnect(response, () => this.#finish("disconnected"));
    if (this.#end === undefined) this.#schedulePing();
  }

  /** Aborts when the stream has no reader left, whatever the reason. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  get ended(): SseEnd | undefined {
    return this.#end;
  }

  /** Whether the reader has not taken what was sent last. */
  get isBehind(): boolean {
    return this.#response.writableNeedDrain;
  }

  /** Whether so much waits for the reader that nothing more is written. */
  get isFull(): boolean {
    return this.#isFull();
  }

  /** Writes the text of an event and, when the buffer is full, waits until the reader has taken some of it. */
  async send(text: string | Uint8Array): Promise<void> {
    if (this.#end !== undefined) return;
    if (!this.#write(text) && this.#isFull()) await this.#drained();
  }

  /** Writes what is of no use later; a reader whose buffer is full is disconnected. */
  sendNow(text: string): void {
    if (this.#end !== undefined) return;
    this.#write(text);
    if (this.#isFull()) this.#drop();
  }

  /** Writes what may get lost, for callers that send little and nothing while the reader is behind. */
  offer(text: string): void {
    if (this.#end === undefined) this.#write(text);
  }

  end(): void {
    if (this.#end !== undefined) return;
    this.#finish("closed");
    this.#response.end();
  }

  #write(text: string | Uint8Array): boolean {
    this.#silentSince = this.#options.clock.now();
    return this.#response.write(text);
  }

  #isFull(): boolean {
    return this.#response.writableLength > this.#options.maxBuffered;
  }

  async #drained(): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(this.#options.patience, () => {
        this.#drop();
        done();
      });
      const done = () => {
        cancel();
        this.#response.off("drain", done);
        this.signal.removeEventListener("abort", done);
        resolve();
      };
      this.#response.once("drain", done);
      this.signal.addEventListener("abort", done, { once: true });
    });
  }

  #drop(): void {
    if (this.#end !== undefined) return;
    this.#finish("too_slow");
    this.#response.destroy();
  }

  #finish(end: SseEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#cancelPing();
    this.#ended.abort();
  }

  /** One timer per stream: it checks how long the stream was silent instead of being reset with every event. */
  #schedulePing(): void {
    const { clock, heartbeat, ping } = this.#options;
    const silence = clock.now() - this.#silentSince;
    this.#cancelPing = clock.after(Math.max(1, heartbeat - silence), () => {
      if (this.#end !== undefined) return;
      if (clock.now() - this.#silentSince >= heartbeat) this.sendNow(ping());
      if (this.#end === undefined) this.#schedulePing();
    });
  }
}

/** One WebSocket connection: JSON-RPC requests, notifications, and how it ended. It is used once. */
import { deferred, isRecord } from "../../base/index.js";
import { type Closing, ConversationError } from "../conversations-errors.js";
import type { WebSocketLike } from "./socket.js";

/** `size` is the length of the frame in characters. */
export type NotificationListener = (
  notification: { readonly method: string; readonly params: Record<string, unknown>; readonly size: number },
  link: MapLink,
) => void;

export interface LinkOptions {
  readonly open: (url: string) => WebSocketLike | Promise<WebSocketLike>;
  /** Milliseconds until the connection must be open. */
  readonly timeout: number;
  readonly onNotification: NotificationListener;
}

export interface LinkCall {
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
  /** Called with the result before any later frame is read. */
  readonly onResult?: (result: Record<string, unknown>) => void;
}

interface Waiting {
  readonly method: string;
  readonly settle: (frame: Record<string, unknown>) => void;
  readonly fail: (error: unknown) => void;
}

/** Requests without a response at once. */
const MAX_WAITING = 2_000;

/** A WebSocket without a close frame: the connection broke. */
const ABNORMAL = 1006;
/** Pages that the server does not allow. */
const FOREIGN_ORIGIN = 4403;
/** Milliseconds that the server has for its part of the closing handshake. */
const CLOSING = 2_000;

export class MapLink {
  /** Number of received frames. */
  received = 0;
  /** When the last frame arrived. */
  lastReceived = Date.now();
  readonly closed: Promise<Closing>;
  readonly #address: string;
  readonly #socket: WebSocketLike;
  readonly #options: LinkOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended = deferred<Closing>();
  #closing: Closing | undefined;
  #next = 1;
  #opened = false;
  #problem = "";

  private constructor(address: string, socket: WebSocketLike, options: LinkOptions) {
    this.#address = address;
    this.#socket = socket;
    this.#options = options;
    this.closed = this.#ended.promise;
    socket.addEventListener("message", ({ data }) => this.#receive(data));
    socket.addEventListener("close", ({ code, reason }) => this.#end({ code, reason: String(reason) }));
    // `close` follows.
    socket.addEventListener("error", (event) => {
      this.#problem ||= "message" in event && typeof event.message === "string" ? event.message : "";
    });
  }

  /** @throws ConversationError `unreachable`, `refused` */
  static async open(address: string, options: LinkOptions, signal?: AbortSignal): Promise<MapLink> {
    let socket: WebSocketLike;
    try {
      socket = await options.open(address);
    } catch (cause) {
      throw new ConversationError("unreachable", `no connection to ${address}: ${String(cause)}`, { cause });
    }
    const link = new MapLink(address, socket, options);
    const opened = deferred<void>();
    socket.addEventListener("open", () => {
      link.#opened = true;
      opened.resolve();
    });
    void link.closed.then((closing) => opened.reject(link.refusal(closing)));
    const timer = setTimeout(
      () => link.abort({ code: ABNORMAL, reason: `no response within ${options.timeout} ms` }),
      options.timeout,
    );
    const onAbort = () => link.abort({ code: ABNORMAL, reason: "aborted" });
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    try {
      await opened.promise;
      return link;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  get isOpen(): boolean {
    return this.#closing === undefined;
  }

  /**
   * Sends a request.
   * @throws ConversationError `refused`, `timeout`, `connection_lost`, `too_many_requests`, or the signal's reason
   */
  request(method: string, params: object, call: LinkCall): Promise<Record<string, unknown>> {
    const { signal, timeout, onResult } = call;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason);
      if (this.#closing !== undefined) return reject(this.lost(method));
      if (this.#waiting.size >= MAX_WAITING) {
        const message = `${method} was not sent: ${MAX_WAITING} calls wait for their responses`;
        return reject(new ConversationError("too_many_requests", message));
      }
      const id = this.#next++;
      const over = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        this.#waiting.delete(id);
      };
      const fail = (error: unknown) => {
        over();
        reject(error);
      };
      const onAbort = () => fail(signal?.reason);
      const timer = setTimeout(
        () => fail(new ConversationError("timeout", `${method} got no response within ${timeout} ms`)),
        timeout,
      );
      signal?.addEventListener("abort", onAbort, { once: true });
      const settle = (frame: Record<string, unknown>) => {
        if (isRecord(frame.error)) return fail(refused(method, frame.error));
        over();
        const result = isRecord(frame.result) ? { ...frame.result } : {};
        onResult?.(result);
        resolve(result);
      };
      this.#waiting.set(id, { method, settle, fail });
      try {
        this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
      } catch (error) {
        // Not JSON, or the socket is closing.
        fail(this.#closing === undefined && error instanceof TypeError ? error : this.lost(method));
      }
    });
  }

  /** Closes the connection in the regular way. */
  close(): void {
    this.#socket.close(1000);
    this.#end({ code: 1000, reason: "closed by this client" });
    const stop = setTimeout(() => this.#socket.terminate?.(), CLOSING);
    if (typeof stop === "object") stop.unref();
  }

  /** The connection is dead or of no use. */
  abort(closing: Closing): void {
    if (this.#closing !== undefined) return;
    this.#end(closing);
    if (this.#socket.terminate === undefined) this.#socket.close();
    else this.#socket.terminate();
  }

  /** The error of a connection that ended before it could be used. */
  refusal(closing: Closing): ConversationError {
    const { code, reason } = closing;
    const [, status] = /server response: (\d{3})/.exec(this.#problem) ?? [];
    if (status !== undefined && /^4(?!08|25|29)/.test(status)) {
      return new ConversationError(
        "refused",
        `${this.#address} refused the connection with status ${status}`,
        {
          closing,
          data: { status: Number(status) },
        },
      );
    }
    if (code === FOREIGN_ORIGIN) {
      return new ConversationError("refused", `${this.#address} refused the connection: ${reason}`, {
        closing,
      });
    }
    const why = reason || this.#problem || (code === ABNORMAL ? "" : `code ${code}`);
    const message = `no connection to ${this.#address}${why === "" ? "" : `: ${why}`}`;
    return new ConversationError("unreachable", message, { closing });
  }

  /** The error of a call that got no response, or without a method that of the connection. */
  lost(method?: string): ConversationError {
    const { code, reason } = this.#closing ?? { code: ABNORMAL, reason: "" };
    const why = reason === "" ? `code ${code}` : `code ${code}, ${reason}`;
    const when = method === undefined ? "" : ` before ${method} got a response`;
    const message = `the connection is lost (${why})${when}`;
    return new ConversationError("connection_lost", message, { closing: { code, reason } });
  }

  #receive(data: unknown): void {
    if (this.#closing !== undefined) return;
    this.received++;
    this.lastReceived = Date.now();
    const frame = parse(data);
    if (frame === undefined) {
      this.abort({ code: ABNORMAL, reason: "the server sent a frame that is not a JSON object" });
      return;
    }
    const { id, method } = frame;
    if (typeof method === "string") {
      const params = isRecord(frame.params) ? { ...frame.params } : {};
      this.#options.onNotification({ method, params, size: String(data).length }, this);
    } else if (typeof id === "number") {
      this.#waiting.get(id)?.settle(frame);
    }
  }

  #end(closing: Closing): void {
    if (this.#closing !== undefined) return;
    this.#closing = closing.reason === "" && !this.#opened ? { ...closing, reason: this.#problem } : closing;
    for (const { method, fail } of [...this.#waiting.values()]) fail(this.lost(method));
    this.#ended.resolve(this.#closing);
  }
}

function parse(data: unknown): Record<string, unknown> | undefined {
  try {
    const frame: unknown = JSON.parse(String(data));
    return isRecord(frame) ? frame : undefined;
  } catch {
    return undefined;
  }
}

function refused(
  method: string,
  { code, message, data }: Readonly<Record<string, unknown>>,
): ConversationError {
  return ConversationError.refused(method, { code: Number(code), message: String(message), data });
}

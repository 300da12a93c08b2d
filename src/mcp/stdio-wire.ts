/**
 * MCP's wire over two streams. Unlike the transport of the SDK, which drops what is under way when its input ends, it
 * answers what was asked before it closes: `… | mailroom mcp` gets its answers.
 */
import type { Readable, Writable } from "node:stream";
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  ReadBuffer,
  type RequestId,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/server";

/** Longer than any tool waits, so that only what hangs is cut off. */
const LONGEST_ANSWER = 60_000;

export class StdioWire implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Fulfilled when the input has ended and all that it asked is answered, or when the wire was closed. */
  readonly closed: Promise<void>;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #buffer = new ReadBuffer();
  readonly #unanswered = new Set<RequestId>();
  #patience: NodeJS.Timeout | undefined;
  #inputEnded = false;
  #isClosed = false;
  #settleClosed = () => {};

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
  }

  async start(): Promise<void> {
    this.#output.on("error", this.#onOutputError);
    this.#input.on("error", this.#onInputError);
    if (this.#input.readableEnded || this.#input.destroyed) {
      this.#onInputEnd();
      return;
    }
    this.#input.on("end", this.#onInputEnd);
    this.#input.on("close", this.#onInputEnd);
    this.#input.on("data", this.#onData);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) throw new Error("the connection is closed");
    await new Promise<void>((resolve, reject) => {
      this.#output.write(serializeMessage(message), (error) => (error == null ? resolve() : reject(error)));
    });
    if (isJSONRPCResponse(message) && message.id !== undefined) this.#settle(message.id);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#patience);
    this.#input.off("data", this.#onData);
    this.#input.off("end", this.#onInputEnd);
    this.#input.off("close", this.#onInputEnd);
    this.#input.pause();
    this.onclose?.();
    this.#settleClosed();
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#buffer.append(chunk);
    } catch (error) {
      // A message without end: nothing after it can be told apart.
      this.#report(error);
      this.#close();
      return;
    }
    while (this.#readOne()) {
      // Until there is no whole message left.
    }
  };

  #readOne(): boolean {
    try {
      const message = this.#buffer.readMessage();
      if (message === null) return false;
      this.#note(message);
      this.onmessage?.(message);
    } catch (error) {
      this.#report(error);
    }
    return true;
  }

  #note(message: JSONRPCMessage): void {
    if (isJSONRPCRequest(message)) {
      // Answered only when the connection ends.
      if (message.method !== "subscriptions/listen") this.#unanswered.add(message.id);
    } else if (isJSONRPCNotification(message) && message.method === "notifications/cancelled") {
      const id = message.params?.requestId;
      // What was taken back is not answered.
      if (typeof id === "string" || typeof id === "number") this.#settle(id);
    }
  }

  readonly #onInputEnd = (): void => {
    if (this.#inputEnded) return;
    // The last line may lack its end.
    this.#onData(Buffer.from("\n"));
    this.#inputEnded = true;
    if (this.#unanswered.size === 0) this.#close();
    else this.#patience = setTimeout(() => this.#close(), LONGEST_ANSWER);
  };

  readonly #onInputError = (error: Error): void => this.#report(error);

  /** Nobody reads the answers any more. */
  readonly #onOutputError = (error: Error): void => {
    this.#report(error);
    this.#close();
  };

  #settle(id: RequestId): void {
    this.#unanswered.delete(id);
    if (this.#inputEnded && this.#unanswered.size === 0) this.#close();
  }

  #close(): void {
    this.close().catch((error: unknown) => this.#report(error));
  }

  #report(error: unknown): void {
    if (!this.#isClosed) this.onerror?.(error instanceof Error ? error : new Error(String(error)));
  }
}

/**
 * MCP's transport over two streams. At the end of the input it answers all requests before it closes, so that `… |
 * mailroom mcp` gets its answers. The SDK's transport drops them.
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
import { exceedsDepth, JsonDepthError, MAX_JSON_DEPTH } from "../../base/index.js";

/** JSON-RPC's code. */
const INVALID_PARAMS = -32_602;
/** Longer than any tool waits, so that only a hanging call is cut off. */
const MAX_ANSWER_TIME = 60_000;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Resolves when the input has ended and all requests are answered, or when the transport is closed. */
  readonly closed: Promise<void>;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #buffer = new ReadBuffer();
  readonly #unanswered = new Set<RequestId>();
  #answerTimer: NodeJS.Timeout | undefined;
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
    clearTimeout(this.#answerTimer);
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
      // A message that is too long: later messages cannot be separated from it.
      this.#report(error);
      this.#close();
      return;
    }
    while (this.#readOne()) {
      // Until no complete message is left.
    }
  };

  #readOne(): boolean {
    try {
      const message = this.#buffer.readMessage();
      if (message === null) return false;
      if (exceedsDepth(message, MAX_JSON_DEPTH)) this.#refuse(message);
      else {
        this.#note(message);
        this.onmessage?.(message);
      }
    } catch (error) {
      this.#report(error);
    }
    return true;
  }

  #refuse(message: JSONRPCMessage): void {
    const error = new JsonDepthError();
    this.#report(error);
    if (!isJSONRPCRequest(message)) return;
    const refusal = { code: INVALID_PARAMS, message: `the message is ${error.message}` };
    this.send({ jsonrpc: "2.0", id: message.id, error: refusal }).catch((cause: unknown) =>
      this.#report(cause),
    );
  }

  #note(message: JSONRPCMessage): void {
    if (isJSONRPCRequest(message)) {
      // Long-lived requests are answered only when the connection ends.
      if (message.method !== "subscriptions/listen") this.#unanswered.add(message.id);
    } else if (isJSONRPCNotification(message) && message.method === "notifications/cancelled") {
      const id = message.params?.requestId;
      // Cancelled requests get no answer.
      if (typeof id === "string" || typeof id === "number") this.#settle(id);
    }
  }

  readonly #onInputEnd = (): void => {
    if (this.#inputEnded) return;
    // The last line may lack a line break.
    this.#onData(Buffer.from("\n"));
    this.#inputEnded = true;
    if (this.#unanswered.size === 0) this.#close();
    else this.#answerTimer = setTimeout(() => this.#close(), MAX_ANSWER_TIME);
  };

  readonly #onInputError = (error: Error): void => this.#report(error);

  /** The reader of the output is gone. */
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

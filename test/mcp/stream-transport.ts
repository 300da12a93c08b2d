/** The client side of a stdio connection, over streams instead of a process. */
import type { Readable, Writable } from "node:stream";
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";

export class StreamTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #from: Readable;
  readonly #to: Writable;
  #rest = "";

  constructor(from: Readable, to: Writable) {
    this.#from = from;
    this.#to = to;
  }

  async start(): Promise<void> {
    this.#from.on("data", (chunk: unknown) => {
      const lines = (this.#rest + String(chunk)).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.onmessage?.(deserializeMessage(line));
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#to.write(serializeMessage(message));
  }

  async close(): Promise<void> {
    this.#to.end();
    this.onclose?.();
  }
}

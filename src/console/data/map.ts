/** Conversations over the server's WebSocket: JSON-RPC, and a subscription to what happens. */
import { caller, callerName, ROOT, readProof } from "./api.js";

interface Waiting {
  readonly resolve: (text: string) => void;
  readonly reject: (error: Error) => void;
}

const TIMEOUT = 20_000;

export class MapConnection {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #onEvent: () => void;
  readonly ready: Promise<void>;
  #next = 1;
  #closed = false;

  /**
   * @param onEvent something happened in a conversation that the caller sees
   * @param as another principal than the caller, in development mode
   */
  constructor(onEvent: () => void, onLost: () => void, as = callerName()) {
    this.#onEvent = onEvent;
    const url = new URL("map", ROOT);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.#socket = new WebSocket(url);
    this.#socket.addEventListener("message", ({ data }) => this.#receive(String(data)));
    this.#socket.addEventListener("close", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the connection was lost"));
      this.#waiting.clear();
      if (!this.#closed) onLost();
    });
    this.ready = new Promise<void>((resolve, reject) => {
      this.#socket.addEventListener("open", () => resolve());
      this.#socket.addEventListener("close", () =>
        reject(new Error("the server does not take this connection")),
      );
    }).then(() => this.#enter(as));
    this.ready.catch(() => {});
  }

  close(): void {
    this.#closed = true;
    this.#socket.close();
  }

  async #enter(as: string): Promise<void> {
    const auth =
      caller.value?.dev === true
        ? { method: "bearer", token: as }
        : { method: "console", credential: readProof() ?? "" };
    await this.call("map/connect", { protocolVersion: 1, participantType: "client", auth });
    await this.call("map/subscribe", { filter: {} }).catch(() => {});
  }

  call<T>(method: string, params: object = {}): Promise<T> {
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error("the server did not answer in time"));
      }, TIMEOUT);
      this.#waiting.set(id, {
        resolve: (text) => {
          clearTimeout(timer);
          resolve(JSON.parse(text).result);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
      this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  #receive(text: string): void {
    const message = JSON.parse(text);
    if (typeof message.id === "number") {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error === undefined) waiting?.resolve(text);
      else waiting?.reject(new Error(String(message.error.message)));
    } else if (typeof message.method === "string") this.#onEvent();
  }
}

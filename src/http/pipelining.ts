/**
 * Limits how many requests of one HTTP/1.1 connection are served at once. Node starts each request as soon as it is
 * parsed, however many are unanswered, so one client that pipelines could fill the memory. Further requests wait
 * unstarted, the connection is not read meanwhile, and what a client that has left did not get started never starts.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Enough for an honest client that pipelines, few enough that many connections together leave the others time. */
export const REQUESTS_AT_ONCE = 8;

export function limitPipelining(handler: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Connection>();
  return (request, response) => {
    // HTTP/2 does not answer in order: its streams are no queue.
    if (request.httpVersionMajor !== 1) return handler(request, response);
    const { socket } = request;
    let connection = connections.get(socket);
    if (connection === undefined) {
      connection = new Connection(socket, handler);
      connections.set(socket, connection);
    }
    connection.take(request, response);
  };
}

class Connection {
  readonly #socket: Socket;
  readonly #handler: RequestListener;
  readonly #waiting: (readonly [IncomingMessage, ServerResponse])[] = [];
  readonly #unanswered = new Set<ServerResponse>();

  constructor(socket: Socket, handler: RequestListener) {
    this.#socket = socket;
    this.#handler = handler;
    // Reading the body of a request resumes its connection.
    socket.on("resume", () => {
      if (this.#waiting.length > 0) socket.pause();
    });
    socket.once("close", () => {
      this.#waiting.length = 0;
      // Node closes only the response that is being written. Those behind it would never learn that the client left.
      for (const response of [...this.#unanswered]) {
        if (response.socket !== null) continue;
        response.destroyed = true;
        response.emit("close");
      }
    });
  }

  /** Serves the request now, or when enough of those before it have been answered. */
  take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#unanswered.size < REQUESTS_AT_ONCE) return this.#serve(request, response);
    this.#waiting.push([request, response]);
    this.#socket.pause();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.#unanswered.add(response);
    response.once("close", () => this.#answered(response));
    this.#handler(request, response);
  }

  #answered(response: ServerResponse): void {
    this.#unanswered.delete(response);
    const next = this.#waiting.shift();
    if (next === undefined) return;
    if (this.#waiting.length === 0) this.#socket.resume();
    this.#serve(...next);
  }
}

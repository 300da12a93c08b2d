/** Open connections of the listener for peers: limited per caller, and idle ones are given up for newcomers. */
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import { networkOf } from "./client-address.js";

interface Connection {
  readonly socket: Socket;
  readonly caller: string;
  /** Requests in progress. */
  requests: number;
  /** Whether it has ever made a request. */
  isProven: boolean;
}

export class Connections {
  readonly #most: number;
  readonly #mostPerCaller: number;
  /** In the order in which they were opened. */
  readonly #open = new Map<string, Connection>();
  readonly #byCaller = new Map<string, number>();

  /** @param mostPerCaller undefined behind proxies, where all connections come from the proxy */
  constructor(most: number, mostPerCaller = Number.POSITIVE_INFINITY) {
    this.#most = most;
    this.#mostPerCaller = mostPerCaller;
  }

  /** Closes the connection if its caller has too many, and another one if there are too many in total. */
  add(socket: Socket): void {
    const caller = networkOf(socket.remoteAddress ?? "unknown");
    const count = this.#byCaller.get(caller) ?? 0;
    if (count >= this.#mostPerCaller || (this.#open.size >= this.#most && !this.#giveUpOne(count))) {
      socket.destroy();
      return;
    }
    const name = nameOf(socket);
    this.#open.set(name, { socket, caller, requests: 0, isProven: false });
    this.#byCaller.set(caller, (this.#byCaller.get(caller) ?? 0) + 1);
    socket.once("close", () => this.#remove(name));
  }

  /** The connection of this request is not idle until the response is complete. */
  busy(request: Http2ServerRequest, response: Http2ServerResponse): void {
    const connection = this.#open.get(nameOf(request.socket));
    if (connection === undefined) return;
    connection.requests += 1;
    connection.isProven = true;
    response.once("close", () => {
      connection.requests -= 1;
    });
  }

  /**
   * Closes an idle connection: of the caller with the most connections, one that made no request before one that did,
   * the oldest first. Never of a caller that has fewer connections than the newcomer.
   */
  #giveUpOne(newcomers: number): boolean {
    let worst: Connection | undefined;
    let most = newcomers;
    for (const connection of this.#open.values()) {
      if (connection.requests > 0) continue;
      const count = this.#byCaller.get(connection.caller) ?? 0;
      const isWorse =
        count > most || (count === most && (worst === undefined || worst.isProven > connection.isProven));
      if (!isWorse) continue;
      worst = connection;
      most = count;
    }
    if (worst === undefined) return false;
    this.#remove(nameOf(worst.socket));
    worst.socket.destroy();
    return true;
  }

  #remove(name: string): void {
    const connection = this.#open.get(name);
    if (connection === undefined) return;
    this.#open.delete(name);
    const left = (this.#byCaller.get(connection.caller) ?? 1) - 1;
    if (left > 0) this.#byCaller.set(connection.caller, left);
    else this.#byCaller.delete(connection.caller);
  }
}

/** The TLS socket of a request and the socket below it have the same remote end. */
function nameOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}

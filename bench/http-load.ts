/**
 * Load: each connection sends a request, waits for the answer, and sends the next. On bare sockets, because client
 * and server share two cores.
 */
import { connect, type Socket } from "node:net";

export interface LoadRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly token?: string;
  readonly body?: unknown;
}

export interface Expected {
  readonly status: number;
  /** Text that every answer's body must contain. */
  readonly contains: string;
}

export interface Load {
  readonly url: URL;
  readonly connections: number;
  /** The request that a connection repeats. */
  readonly request: (connection: number) => LoadRequest;
  readonly expected: Expected;
  readonly warmUp: number;
  readonly duration: number;
}

export interface Measured {
  readonly perSecond: number;
  /** All answers, including the warm-up. */
  readonly count: number;
  /** Milliseconds, ascending. */
  readonly latencies: readonly number[];
}

/**
 *
 * @throws Error when an answer is not the expected one, because rates of errors are meaningless
 */
export async function measure(load: Load): Promise<Measured> {
  const latencies: number[] = [];
  let count = 0;
  const begin = performance.now() + load.warmUp;
  const end = begin + load.duration;
  const run = async (index: number): Promise<void> => {
    const connection = await Connection.open(load.url);
    const bytes = requestBytes(load.url, load.request(index));
    try {
      for (;;) {
        const sent = performance.now();
        if (sent >= end) return;
        check(await connection.exchange(bytes), load.expected);
        count++;
        const received = performance.now();
        if (received >= begin && received < end) latencies.push(received - sent);
      }
    } finally {
      connection.close();
    }
  };
  await Promise.all(Array.from({ length: load.connections }, (_, index) => run(index)));
  return {
    perSecond: latencies.length / (load.duration / 1000),
    count,
    latencies: latencies.sort((a, b) => a - b),
  };
}

interface Received {
  readonly status: number;
  readonly body: string;
}

/** One keep-alive connection with one request at a time. Parses the answers of Mailroom, not all of HTTP. */
class Connection {
  readonly #socket: Socket;
  #received = "";
  #settle: { resolve(answer: Received): void; reject(error: Error): void } | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => this.#take(String(chunk)));
    socket.on("error", (error) => this.#settle?.reject(error));
    socket.on("close", () => this.#settle?.reject(new Error("the server closed the connection")));
  }

  static open(url: URL): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(url.port), url.hostname, () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
      socket.once("error", reject);
    });
  }

  exchange(bytes: Uint8Array): Promise<Received> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#settle = undefined;
    this.#socket.destroy();
  }

  #take(chunk: string): void {
    this.#received += chunk;
    const head = this.#received.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1];
    if (length === undefined) {
      this.#settle?.reject(new Error(`an answer without content-length: ${this.#received.slice(0, head)}`));
      return;
    }
    const end = head + 4 + Number(length);
    if (this.#received.length < end) return;
    const answer = {
      status: Number(this.#received.slice(9, 12)),
      body: this.#received.slice(head + 4, end),
    };
    this.#received = this.#received.slice(end);
    this.#settle?.resolve(answer);
  }
}

function requestBytes({ host }: URL, { method, path, token, body }: LoadRequest): Uint8Array {
  const text = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `host: ${host}`,
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
    ...(body === undefined
      ? []
      : ["content-type: application/json", `content-length: ${Buffer.byteLength(text)}`]),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${text}`);
}

function check({ status, body }: Received, expected: Expected): void {
  if (status === expected.status && body.includes(expected.contains)) return;
  throw new Error(`expected ${expected.status} with ${expected.contains}, got ${status}: ${body}`);
}

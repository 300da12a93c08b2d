/** A connection without a socket, which closes only when the test closes it. */
import type { MapServer } from "../../src/doors/map/index.js";
import { until } from "./harness.js";

interface Answer {
  readonly id?: unknown;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number };
}

export class DirectTransport {
  readonly #answers: Answer[] = [];
  readonly #connection: ReturnType<MapServer["connect"]>;
  #asked = 0;

  constructor(map: MapServer, token?: string) {
    this.#connection = map.connect(
      {
        send: (text) => void this.#answers.push(JSON.parse(text)),
        buffered: 0,
        close: () => {},
      },
      token === undefined ? {} : { credential: token },
    );
  }

  async ask(method: string, params: object = {}): Promise<Answer> {
    const id = this.tell(method, params);
    return until(() => this.#answers.find((answer) => answer.id === id));
  }

  /** Does not wait for the response. */
  tell(method: string, params: object = {}): number {
    const id = ++this.#asked;
    this.#connection?.receive(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return id;
  }

  lost(): void {
    this.#connection?.lost();
  }
}

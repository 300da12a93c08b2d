/** A real MAP server on a real port, the official SDK's clients, and hand-made frames. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  AgentConnection,
  ClientConnection,
  MAPRequestError,
  type Subscription,
  websocketStream,
} from "@multi-agent-protocol/sdk";
import { WebSocket } from "ws";
import { attachMap, MapServer, type MapServerOptions } from "../../src/conversations/index.js";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { type FullStore, openStore } from "../../src/store/index.js";

// The SDK uses the global class, which Node 20 does not have.
Object.assign(globalThis, { WebSocket });

export type ServerOptions = Partial<Omit<MapServerOptions, "store" | "index">> & {
  /** Default: a store in memory. */
  readonly directory?: string;
  readonly store?: FullStore;
};

export class Harness {
  readonly map: MapServer;
  readonly store: FullStore;
  readonly url: string;
  readonly problems: unknown[] = [];
  readonly #http: Server;
  readonly #open: (() => Promise<unknown>)[] = [];

  private constructor(parts: { map: MapServer; store: FullStore; http: Server; problems: unknown[] }) {
    this.map = parts.map;
    this.store = parts.store;
    this.problems = parts.problems;
    this.#http = parts.http;
    this.url = `ws://127.0.0.1:${(parts.http.address() as AddressInfo).port}/map`;
  }

  static async start(options: ServerOptions = {}): Promise<Harness> {
    const { directory, ...rest } = options;
    const store =
      options.store ?? (await openStore(directory === undefined ? { path: ":memory:" } : { directory }));
    const problems: unknown[] = [];
    const map = await MapServer.open({
      clock: systemClock,
      ids: systemIds,
      dev: true,
      report: (error) => problems.push(error),
      ...rest,
      store,
      index: store.conversations,
    });
    const http = createServer();
    const door = attachMap(http, map);
    http.on("close", () => door.close());
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    return new Harness({ map, store, http, problems });
  }

  async client(options: Parameters<typeof ClientConnection.connect>[1] = {}): Promise<ClientConnection> {
    const client = await ClientConnection.connect(this.url, options);
    this.#open.push(() => client.disconnect());
    return client;
  }

  /** A client that has not said `map/connect` yet. */
  async bareClient(): Promise<{ client: ClientConnection; socket: WebSocket }> {
    const socket = await this.socket();
    const client = new ClientConnection(streamOf(socket));
    this.#open.push(async () => socket.close());
    return { client, socket };
  }

  async bareAgent(
    options: { name?: string; role?: string } = {},
  ): Promise<{ agent: AgentConnection; socket: WebSocket }> {
    const socket = await this.socket();
    const agent = new AgentConnection(streamOf(socket), options);
    this.#open.push(async () => socket.close());
    return { agent, socket };
  }

  /** An agent under an id of its choice. */
  async agent(agentId: string, options: { name?: string; role?: string } = {}): Promise<AgentConnection> {
    const { agent } = await this.bareAgent(options);
    await agent.connect({ agentId });
    return agent;
  }

  async socket(): Promise<WebSocket> {
    const socket = new WebSocket(this.url);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    return socket;
  }

  async raw(options: { connect?: Record<string, unknown> | false } = {}): Promise<RawClient> {
    const raw = new RawClient(await this.socket());
    this.#open.push(async () => raw.socket.close());
    if (options.connect !== false) {
      await raw.call("map/connect", { protocolVersion: 1, participantType: "agent", ...options.connect });
    }
    return raw;
  }

  async stop(options: { keepStore?: boolean } = {}): Promise<void> {
    await Promise.allSettled(this.#open.map((close) => close()));
    await this.map.close();
    await new Promise((resolve) => {
      this.#http.close(resolve);
      this.#http.closeAllConnections();
    });
    if (options.keepStore !== true) await this.store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export function streamOf(socket: WebSocket): ReturnType<typeof websocketStream> {
  return websocketStream(socket as unknown as Parameters<typeof websocketStream>[0]);
}

export interface Frame {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Record<string, unknown>;
  };
}

/** Frames as they are on the wire. */
export class RawClient {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  /** How many of them answer a request. */
  answered = 0;
  #next = 1;
  readonly #waiting = new Set<() => void>();

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      const frame: Frame = JSON.parse(String(data));
      this.frames.push(frame);
      if (frame.method === undefined) this.answered++;
      for (const wake of this.#waiting) wake();
    });
  }

  send(text: string): void {
    this.socket.send(text);
  }

  /** The first frame, old or new, that fits. */
  async find(fits: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const found = this.frames.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  async request(method: string, params?: unknown, id: unknown = `r${this.#next++}`): Promise<Frame> {
    this.send(JSON.stringify({ jsonrpc: "2.0", id, method, ...(params !== undefined && { params }) }));
    return this.find((frame) => frame.id === id);
  }

  /** The result; throws the error. */
  async call(method: string, params?: unknown): Promise<Record<string, unknown>> {
    const { result, error } = await this.request(method, params);
    if (result === undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  events(): {
    readonly sequenceNumber: number;
    readonly event: { type: string; data: Record<string, unknown> };
  }[] {
    return this.frames.filter(({ method }) => method === "map/event").map(({ params }) => params as never);
  }
}

/** The number of the error with which a call fails; `undefined` if it does not fail. */
export async function codeOf(call: Promise<unknown>): Promise<number | undefined> {
  try {
    await call;
  } catch (error) {
    if (error instanceof MAPRequestError) return error.code;
    throw error;
  }
  return undefined;
}

/** Waits for something to come true without assuming how long it takes. */
export async function until<T>(look: () => T | undefined | false): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export interface Gathered {
  readonly types: () => string[];
  readonly events: { readonly id: string; readonly type: string; readonly data: Record<string, unknown> }[];
  readonly count: (atLeast: number) => Promise<void>;
}

/** Everything that a subscription is told. */
export function gather(subscription: Subscription): Gathered {
  const events: Gathered["events"] = [];
  subscription.on("event", ({ id, type, data = {} }) => {
    events.push({ id, type, data: { ...data } });
  });
  return {
    events,
    types: () => events.map(({ type }) => type),
    count: async (atLeast) => {
      await until(() => events.length >= atLeast);
    },
  };
}

export const text = (words: string) => ({ contentType: "text", content: { text: words } });

/** A MAP server on a real port, clients of the official SDK, and raw frames. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  AgentConnection,
  ClientConnection,
  MAPRequestError,
  type Subscription,
  websocketStream,
} from "@multi-agent-protocol/sdk";
import { afterAll, beforeAll, describe } from "vitest";
import { WebSocket } from "ws";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { attachMap, MapServer, type MapServerOptions } from "../../src/doors/map/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";

// The SDK uses the global class, which Node 20 does not have.
Object.assign(globalThis, { WebSocket });

let policy: "open" | "invite" | undefined;

/** A group of tests that runs with both values of `map.joining`. */
export function withBothPolicies(name: string, tests: () => void): void {
  describe.each(["open", "invite"] as const)(`${name} (map.joining = %s)`, (joining) => {
    beforeAll(() => {
      policy = joining;
    });
    afterAll(() => {
      policy = undefined;
    });
    tests();
  });
}

/** For conversations that participants join without an invitation, whatever the server's policy is. */
export const OPEN = { metadata: { joinPolicy: "open" } } as const;

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
    const { directory, mail = {}, ...rest } = options;
    const store =
      options.store ?? (await openStore(directory === undefined ? { path: ":memory:" } : { directory }));
    const problems: unknown[] = [];
    const map = await MapServer.open({
      clock: systemClock,
      ids: systemIds,
      dev: true,
      report: (error) => problems.push(error),
      mail: mail && { ...mail, rules: { ...(policy !== undefined && { joining: policy }), ...mail.rules } },
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

  /** A client that has not sent `map/connect` yet. */
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

  /** An agent with a chosen id. */
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
  /** The number of responses. */
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

  /** The first matching frame, past or future. */
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

  /** Returns the result or throws the error. */
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

/** The error code of a failed call, or `undefined` if it succeeds. */
export async function codeOf(call: Promise<unknown>): Promise<number | undefined> {
  try {
    await call;
  } catch (error) {
    if (error instanceof MAPRequestError) return error.code;
    throw error;
  }
  return undefined;
}

/** Waits for a condition without assuming how long it takes. */
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

/** All events of a subscription. */
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

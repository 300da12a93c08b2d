/** A mailroom with MAP on its server's port. Callers authenticate as `role:id`. */
import { WebSocket } from "ws";
import { devAuthenticator } from "../../src/auth/index.js";
import type { Clock } from "../../src/base/index.js";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { MapServer } from "../../src/doors/map/index.js";
import { defineAction, defineAgent, defineSwarm, Mailroom } from "../../src/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";
import { createListener } from "../kit/listener.js";
import { type Frame, RawClient } from "./harness.js";

const look = defineAction({
  name: "look_up",
  description: "Looks something up.",
  parameters: { type: "object", properties: { what: { type: "string" } } },
  idempotent: true,
  run: () => "in the drawer",
});

/**
 * The boss asks a coder in another process and reports its answer. `look` makes it run an action, `wait`
 * leaves it waiting for the coder.
 */
function office() {
  const boss = defineAgent({
    name: "boss",
    commTargets: ["coder"],
    enableEntrypoint: true,
    canCompleteTasks: true,
    actions: [look],
    run: (mail) => {
      if (mail.result !== undefined) return mail.complete(mail.result.content);
      const told = mail.answerFrom("coder");
      if (told !== undefined) return mail.complete(`coder says: ${told}`);
      if (mail.message.message.sender.address === "coder") return mail.complete(`coder writes: ${mail.body}`);
      if (mail.body.startsWith("look")) return mail.act(look, { what: mail.body });
      mail.request("coder", "work", mail.body);
    },
  });
  const coder = defineAgent({ name: "coder", commTargets: ["boss"], remote: true });
  const quiet = defineAgent({ name: "quiet", commTargets: ["boss"], run: () => {} });
  return defineSwarm({ name: "office", agents: [boss, coder, quiet] });
}

export class BridgeHarness {
  readonly url: string;
  readonly mailroom: Mailroom;
  readonly map: MapServer;
  readonly store: FullStore;
  readonly problems: unknown[];
  readonly #close: () => Promise<void>;
  readonly #clients: RawClient[] = [];

  private constructor(parts: {
    url: string;
    mailroom: Mailroom;
    map: MapServer;
    store: FullStore;
    problems: unknown[];
    close: () => Promise<void>;
  }) {
    this.url = parts.url;
    this.mailroom = parts.mailroom;
    this.map = parts.map;
    this.store = parts.store;
    this.problems = parts.problems;
    this.#close = parts.close;
  }

  static async start(
    options: {
      readonly directory?: string;
      /** Default: a new store. */
      readonly store?: FullStore;
      readonly port?: number;
      readonly dev?: boolean;
      /** Default: the office. */
      readonly swarm?: ReturnType<typeof defineSwarm>;
      /** Used by MAP only. */
      readonly clock?: Clock;
    } = {},
  ): Promise<BridgeHarness> {
    const { directory } = options;
    const store: FullStore =
      options.store ?? (await openStore(directory === undefined ? { path: ":memory:" } : { directory }));
    const mailroom = await Mailroom.open({ swarm: options.swarm ?? office(), store, onProblem: () => {} });
    const problems: unknown[] = [];
    const authenticator = devAuthenticator();
    const map = await MapServer.open({
      store,
      index: store.conversations,
      clock: options.clock ?? systemClock,
      ids: systemIds,
      authenticator,
      // The observer grant of development mode must not extend to tasks.
      dev: true,
      runtime: mailroom.runtime,
      report: (error) => problems.push(error),
    });
    const server = await createListener({
      mailroom,
      authenticator,
      version: "0.0.0",
      map,
      ...(options.dev === true && { dev: true }),
    });
    const url = await server.listen(options.port === undefined ? {} : { port: options.port });
    return new BridgeHarness({
      url,
      mailroom,
      map,
      store,
      problems,
      close: async () => {
        await map.close();
        await server.close();
        await mailroom.close({ grace: 0 });
        await store.close();
      },
    });
  }

  /** A connected client: `user:ann`, `admin:root`, `member:coder`. */
  async client(token: string, connect: Record<string, unknown> = {}): Promise<RawClient> {
    const socket = await open(`${this.url.replace("http", "ws")}/map`, token);
    const raw = new RawClient(socket);
    this.#clients.push(raw);
    const participantType = token.startsWith("member:") ? "agent" : "client";
    await raw.call("map/connect", { protocolVersion: 1, participantType, ...connect });
    return raw;
  }

  /** The process that serves the coder. */
  async coder(): Promise<RawClient> {
    const raw = await this.client("member:coder");
    await raw.call("map/agents/register", { agentId: "coder" });
    return raw;
  }

  async stop(): Promise<void> {
    for (const { socket } of this.#clients) socket.terminate();
    await this.#close();
  }
}

export function open(url: string, token: string, headers: Record<string, string> = {}): Promise<WebSocket> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}`, ...headers } });
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve(socket));
    socket.once("error", reject);
  });
}

export interface Delivered {
  readonly id: string;
  readonly from: string;
  readonly payload: { readonly type: string; readonly subject: string; readonly body: string };
  readonly meta: {
    readonly correlationId: string;
    readonly mail: { readonly conversationId: string };
    readonly _meta: { readonly attempt: number; readonly tools: readonly string[] };
  };
}

/** The first `map/message` with this body. */
export async function delivery(raw: RawClient, body: string): Promise<Delivered> {
  const messageOf = (frame: Frame): Delivered | undefined =>
    frame.method === "map/message" ? (frame.params?.message as Delivered) : undefined;
  const frame = await raw.find((one) => messageOf(one)?.payload.body === body);
  const message = messageOf(frame);
  if (message === undefined) throw new Error("a frame without a message");
  return message;
}

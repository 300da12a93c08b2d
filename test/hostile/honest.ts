/** Honest clients: what they ask of each door, and how long the answers take. */
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { wrapperOf } from "../federation/wire.js";
import { tokenFor } from "./attacker.js";

/** One client of one door. */
export interface Honest {
  /** Asks once. @throws if the answer is not the expected one */
  ask(): Promise<void>;
  leave(): void;
}

export type Visit = (port: number, number: number) => Promise<Honest>;

/** A client that asks over HTTP, for something else each time. */
function over(next: (count: number) => Asked): Visit {
  return async (port, number) => {
    let count = number;
    return {
      leave: () => {},
      ask: async () => {
        const { path, init } = next(count++);
        const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
        const text = await response.text();
        if (!response.ok || text.includes('"error":'))
          throw new Error(`${path}: ${response.status} ${text.slice(0, 300)}`);
      },
    };
  };
}

/** A client with a token that asks for the same things in turn. */
function asUser(requests: (token: string) => readonly Asked[]): Visit {
  return (port, number) => {
    const all = requests(tokenFor("user", `honest-${number}`));
    return over((count) => all[count % all.length] ?? { path: "/health" })(port, number);
  };
}

interface Asked {
  readonly path: string;
  readonly init?: RequestInit;
}

function post(path: string, token: string, body: object, headers: Record<string, string> = {}): Asked {
  return {
    path,
    init: {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    },
  };
}

function get(path: string, token: string): Asked {
  return { path, init: { headers: { authorization: `Bearer ${token}` } } };
}

const rpc = (method: string, params: object = {}) => ({ jsonrpc: "2.0", id: 1, method, params });

/** Connects over MAP, writes into a conversation of its own and reads from it. */
async function overMap(port: number, number: number): Promise<Honest> {
  const ws = new WebSocket(`ws://127.0.0.1:${port}/map`);
  const waiting = new Map<number, (frame: { error?: unknown; result?: Record<string, unknown> }) => void>();
  let closed: string | undefined;
  ws.on("close", (code, reason) => {
    closed = `${code} ${reason}`;
    for (const answer of waiting.values()) answer({ error: closed });
  });
  ws.on("error", () => {});
  ws.on("message", (data) => {
    const frame = JSON.parse(String(data));
    waiting.get(frame.id)?.(frame);
    waiting.delete(frame.id);
  });
  await new Promise<void>((resolve, reject) => {
    ws.once("open", () => resolve());
    ws.once("error", reject);
  });
  let id = 0;
  const call = async (method: string, params: object): Promise<Record<string, unknown>> => {
    if (closed !== undefined) throw new Error(`the connection was closed: ${closed}`);
    id++;
    const { error, result = {} } = await new Promise<{ error?: unknown; result?: Record<string, unknown> }>(
      (resolve) => {
        waiting.set(id, resolve);
        ws.send(JSON.stringify({ ...rpc(method, params), id }));
      },
    );
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  };
  const token = tokenFor("user", `honest-${number}`);
  await call("map/connect", { auth: { method: "bearer", token } });
  await call("map/agents/register", { agentId: `honest-agent-${number}` });
  const { conversation } = await call("mail/create", {});
  const { id: conversationId } = conversation as { id: string };
  const requests: readonly (readonly [string, object])[] = [
    ["mail/turn", { conversationId, contentType: "text", content: { text: "hello" } }],
    ["mail/turns/list", { conversationId, limit: 5, order: "desc" }],
    ["map/send", { to: { agent: `honest-agent-${number}` }, payload: "hello" }],
    ["mail/list", { limit: 5 }],
    ["map/agents/list", { limit: 5 }],
    ["mail/get", { conversationId, include: { recentTurns: 3, participants: true } }],
  ];
  return {
    leave: () => ws.terminate(),
    ask: async () => {
      const [method, params] = requests[id % requests.length] ?? ["mail/list", {}];
      await call(method, params);
    },
  };
}

export const HONEST: Readonly<Record<string, Visit>> = {
  map: overMap,
  http: asUser((token) => [
    post("/message", token, { body: "hello", wait: false }),
    get("/tasks", token),
    get("/whoami", token),
    { path: "/health" },
  ]),
  mcp: asUser((token) => [
    post("/mcp", token, rpc("tools/list"), { accept: "application/json, text/event-stream" }),
  ]),
  a2a: asUser((token) => [post("/a2a", token, rpc("ListTasks"), { "a2a-version": "1.0" })]),
  federation: async (port, number) => {
    const source = `honest-${number}`;
    const token = tokenFor("agent", source);
    return over(() => {
      const message = wrapperOf({ source, target: "asking", to: "desk@asking" });
      return post("/interswarm/forward", token, { message });
    })(port, number);
  },
  mesh: async (port) => ({
    leave: () => {},
    ask: () =>
      new Promise((resolve, reject) => {
        const asked = request(
          { host: "localhost", port, path: "/swarm/health", rejectUnauthorized: false, agent: false },
          (response) => {
            response.resume();
            if (response.statusCode === 200) response.once("end", () => resolve());
            else reject(new Error(`/swarm/health: ${response.statusCode}`));
          },
        );
        asked.once("error", reject);
        asked.end();
      }),
  }),
};

export interface Served {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly failures: readonly string[];
}

/** Lets clients ask for a while, each at its own pace. */
export async function served(clients: readonly Honest[], until: number, pace = 50): Promise<Served> {
  const times: number[] = [];
  const failures: string[] = [];
  await Promise.all(
    clients.map(async (client) => {
      while (Date.now() < until) {
        const begun = performance.now();
        await client.ask().catch((error: unknown) => failures.push(String(error)));
        times.push(performance.now() - begun);
        await sleep(pace);
      }
    }),
  );
  times.sort((a, b) => a - b);
  const at = (share: number) => Math.round((times[Math.floor(times.length * share)] ?? 0) * 10) / 10;
  return { count: times.length, p50: at(0.5), p99: at(0.99), failures };
}

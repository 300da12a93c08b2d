/** Several agents in one process, with a network that can be cut and a virtual clock. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import {
  createMeshHandler,
  type MeshHandler,
  type MeshRequest,
  type MeshResponse,
} from "../../src/doors/mesh/handler.js";
import { createOperatorHandler, type OperatorRouteOptions } from "../../src/doors/mesh/operator-routes.js";
import { MeshAgent, type MeshAgentParts } from "../../src/mesh/agent.js";
import { type KeyPair, keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { type InviteFiles, inviteFiles } from "../../src/mesh/invite/files.js";
import { signMessage, type UnsignedMessage } from "../../src/mesh/message/build.js";
import type { MeshMessage } from "../../src/mesh/message/types.js";
import { type MeshOptions, meshOptions } from "../../src/mesh/options.js";
import { type HttpClient, type HttpResponse, NetError } from "../../src/net/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { loopTurns } from "../kit/waiting.js";
import { ReferencePeer } from "./reference-peer.js";

export interface Call {
  readonly from: string;
  readonly method: string;
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Agent {
  readonly name: string;
  readonly agent: MeshAgent;
  readonly store: FullStore;
  readonly pair: KeyPair;
  readonly endpoint: string;
  readonly problems: { code: string; message: string }[];
  readonly directory: string;
  post(
    path: string,
    body: unknown,
    headers?: Record<string, string>,
    address?: string,
  ): Promise<MeshResponse>;
  get(path: string): Promise<MeshResponse>;
  /** The status with which this agent answers a message. */
  answer(message: unknown): Promise<number>;
  /** A message from this agent, signed now with its key, and sealed if it seals, unless overridden. */
  message(
    fields: Partial<UnsignedMessage> & { swarm_id: string },
    signing?: { at?: number; pair?: KeyPair; seals?: boolean },
  ): MeshMessage;
}

interface ForeignAnswer {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The default address of requests. */
const ELSEWHERE = "198.51.100.7";

const ids = { uuid: () => crypto.randomUUID(), ordered: () => crypto.randomUUID() };

export class Mesh {
  readonly clock = new VirtualClock(Date.parse("2026-11-16T12:00:00.000Z"));
  readonly agents = new Map<string, Agent>();
  readonly calls: Call[] = [];
  /** Unreachable hosts. */
  readonly down = new Set<string>();
  /** Responses of a foreign peer. */
  readonly foreign = new Map<string, (call: Call) => ForeignAnswer | Promise<ForeignAnswer>>();
  readonly onDisk: boolean;
  /** Requests that agents have not answered yet. */
  readonly #open = new Set<Promise<MeshResponse>>();
  readonly #directories: string[] = [];

  constructor({ onDisk = false }: { onDisk?: boolean } = {}) {
    this.onDisk = onDisk;
  }

  async agent(
    name: string,
    options: Partial<MeshOptions> = {},
    store?: FullStore,
    parts: Partial<Pick<MeshAgentParts, "checkUrl" | "pair" | "formerPairs" | "inviteFiles">> = {},
  ): Promise<Agent> {
    const seed = Buffer.alloc(32, 0);
    seed.write(name);
    const pair = keyPairFromSeed(seed);
    const endpoint = `https://${name}.example.com/swarm`;
    const own = store ?? (await openStore({ path: ":memory:" }));
    const directory = mkdtempSync(join(tmpdir(), "mesh-agent-"));
    this.#directories.push(directory);
    const problems: { code: string; message: string }[] = [];
    const files = this.onDisk ? inviteFiles(join(directory, "invites")) : inMemory();
    const agent = await MeshAgent.open({
      store: own,
      http: this.#client(name),
      clock: this.clock,
      ids,
      identity: { agentId: name, endpoint },
      pair,
      // As the protocol requires; seals have a test file of their own.
      options: { ...meshOptions(), sealMessages: false, ...options },
      report: (problem) => problems.push(problem),
      random: () => 0,
      inviteFiles: files,
      ...parts,
      ...(this.onDisk && { stateFile: join(directory, "state.json") }),
    });
    const handle = this.#counted(createMeshHandler(agent));
    const post: Agent["post"] = (path, body, headers = {}, address = ELSEWHERE) =>
      handle({
        method: "POST",
        path,
        headers,
        body: Buffer.from(
          body instanceof Uint8Array || typeof body === "string" ? body : JSON.stringify(body),
        ),
        address,
      });
    const made: Agent = {
      name,
      agent,
      store: own,
      pair,
      endpoint,
      problems,
      directory,
      post,
      get: (path) => handle({ method: "GET", path, headers: {}, body: new Uint8Array(), address: ELSEWHERE }),
      answer: async (message) => (await post("/swarm/message", message)).status,
      message: (fields, { at = this.clock.now(), ...signing } = {}) =>
        signMessage(
          {
            message_id: crypto.randomUUID(),
            recipient: "broadcast",
            type: "message",
            content: "hello",
            ...fields,
          },
          { agentId: name, endpoint, pair, seals: options.sealMessages === true, ...signing },
          at,
        ),
    };
    this.agents.set(`${name}.example.com`, made);
    return made;
  }

  /** A foreign peer on the same network. */
  reference(name: string, options: { readonly later?: boolean } = {}): ReferencePeer {
    const { request } = this.#client(name);
    const peer = new ReferencePeer(
      name,
      () => this.clock.now(),
      async ({ method, url, body, headers }) => {
        const answer = await request(url, { method, headers, ...(body !== "" && { body }) });
        return { status: answer.status, body: answer.text() };
      },
      options,
    );
    this.foreign.set(`${name}.example.com`, (call) => peer.serve(call));
    return peer;
  }

  /** A swarm of these agents, with the first as its master. */
  async swarm(master: Agent, ...members: Agent[]): Promise<string> {
    const { id } = await master.agent.create("Lab");
    for (const member of members) await member.agent.join(await master.agent.invite(id));
    await this.settle();
    return id;
  }

  /** Runs everything that needs no time to pass. */
  async settle(): Promise<void> {
    for (let round = 0; round < 4; round += 1) {
      for (const { agent } of this.agents.values()) await agent.quiet();
      await this.answered();
    }
  }

  /**
   * Runs until the agents have answered all requests; those to foreign peers may stay open. Signatures are verified in
   * other threads, so the clock must not be moved before this, however many turns the event loop has taken.
   */
  async answered(): Promise<void> {
    do {
      await Promise.all(this.#open);
      await loopTurns(4);
    } while (this.#open.size > 0);
  }

  #counted(handle: MeshHandler): (request: MeshRequest) => Promise<MeshResponse> {
    return (request) => {
      const response = handle(request).finally(() => this.#open.delete(response));
      this.#open.add(response);
      return response;
    };
  }

  /** Lets time pass, timer by timer. */
  async pass(ms: number): Promise<void> {
    const until = this.clock.now() + ms;
    do await this.settle();
    while (this.clock.step(until));
    if (this.clock.now() < until) this.clock.jump(until - this.clock.now());
  }

  /** Ends an agent's process: the agent leaves the network, its store remains. */
  crash(agent: Agent): FullStore {
    this.agents.delete(`${agent.name}.example.com`);
    void agent.agent.close();
    return agent.store;
  }

  async close(): Promise<void> {
    for (const { agent, store } of this.agents.values()) {
      await agent.close();
      await store.close();
    }
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
  }

  #client(from: string): HttpClient {
    const request: HttpClient["request"] = async (target, options = {}) => {
      const url = new URL(target);
      const { method = "GET", headers = {} } = options;
      const body = options.body === undefined ? "" : Buffer.from(options.body).toString("utf8");
      const call: Call = { from, method, url: url.href, body, headers };
      this.calls.push(call);
      const unreachable = (): NetError => new NetError("unreachable", "the network is cut", { url });
      if (this.down.has(url.hostname) || this.down.has(`${from}.example.com`)) throw unreachable();
      const foreign = this.foreign.get(url.hostname);
      if (foreign !== undefined) {
        const aborted = new Promise<never>((_, reject) =>
          options.signal?.addEventListener("abort", () =>
            reject(new NetError("aborted", "aborted", { url })),
          ),
        );
        return toAnswer(url, await Promise.race([foreign(call), aborted]));
      }
      const agent = this.agents.get(url.hostname);
      if (agent === undefined) throw unreachable();
      const handle = this.#counted(createMeshHandler(agent.agent));
      const response = await handle({
        method,
        path: url.pathname,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
        ),
        body: Buffer.from(body),
        address: `from ${from}`,
      });
      if (this.down.has(url.hostname)) throw unreachable();
      return toAnswer(url, response);
    };
    return { request, open: () => Promise.reject(new Error("not used here")), close: async () => undefined };
  }
}

export function inMemory(): InviteFiles {
  const tokens = new Map<string, string>();
  const pending = new Map<string, string>();
  return {
    keepPending: (swarmId, url) => pending.set(swarmId, url),
    readPending: (swarmId) => pending.get(swarmId),
    forgetPending: (swarmId) => pending.delete(swarmId),
    pending: () => [...pending.keys()],
    keep: (swarmId, token) => tokens.set(swarmId, token),
    read: (swarmId) => tokens.get(swarmId),
    forget: (swarmId) => tokens.delete(swarmId),
  };
}

function toAnswer(
  url: URL,
  response: { status: number; body: string; headers?: Readonly<Record<string, string>> },
): HttpResponse {
  const body = Buffer.from(response.body);
  return {
    status: response.status,
    headers: response.headers ?? {},
    body,
    url: url.href,
    text: () => response.body,
  };
}

export function bodyOf(
  response: MeshResponse,
): Record<string, unknown> & { error?: { code: string; message: string; details?: { reason?: string } } } {
  return JSON.parse(response.body);
}

/** The network of the running test and its agents, in files that call `forEachTest`. */
export let mesh: Mesh;
export let alice: Agent;
export let bob: Agent;
export let carol: Agent;

/** Gives each test of a file its own network and three unrelated agents. */
export function forEachTest({
  onDisk = false,
  ...options
}: Partial<MeshOptions> & { onDisk?: boolean } = {}): void {
  beforeEach(async () => {
    mesh = new Mesh({ onDisk });
    alice = await mesh.agent("alice", options);
    bob = await mesh.agent("bob", options);
    carol = await mesh.agent("carol", options);
  });
  afterEach(() => mesh.close());
}

export function membersAt({ agent }: Agent, swarmId: string): string[] {
  return [...agent.swarm(swarmId).members.keys()].sort();
}

export function tokenOf(inviteUrl: string): string {
  return inviteUrl.split("token=")[1] ?? "";
}

export function joinBody(agent: Agent, token: string, sender: Readonly<Record<string, string>> = {}) {
  return {
    type: "system",
    action: "join_request",
    invite_token: token,
    sender: {
      agent_id: agent.name,
      endpoint: agent.endpoint,
      public_key: agent.pair.publicKey.text,
      ...sender,
    },
  };
}

/** A correctly signed announcement, whether or not its sender has the authority. */
export function system(
  agent: Agent,
  swarm_id: string,
  content: unknown,
  fields: Partial<UnsignedMessage> = {},
): MeshMessage {
  return agent.message({ swarm_id, type: "system", content: JSON.stringify(content), ...fields });
}

/** Calls the operator's routes of an agent. A text body is sent unchanged. */
export function operatorOf({ agent, store }: Agent, options: Partial<OperatorRouteOptions> = {}) {
  const handle = createOperatorHandler({ agent, reads: store.mesh, ...options });
  return async (
    method: "GET" | "POST",
    target: string,
    body: unknown = null,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const { pathname: path, searchParams: query } = new URL(target, "https://operator.example");
    const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const response = await handle({ method, path, query, headers, body: bytes, address: ELSEWHERE });
    if (response === undefined) throw new Error(`${method} ${target} is not an operator route`);
    return { status: response.status, body: response.body === "" ? undefined : JSON.parse(response.body) };
  };
}

/** Messages that an agent received from others, latest first. */
export async function textsAt({ store }: Agent): Promise<string[]> {
  return (await store.mesh.inbox({ limit: 100 }))
    .filter(({ type }) => type === "message")
    .map(({ content }) => content);
}

/** Events that an agent recorded. */
export async function notesAt({ store }: Agent) {
  return (await store.mesh.inbox({ limit: 100 }))
    .filter(({ recipientId }) => recipientId === undefined)
    .map(({ content }) => JSON.parse(content));
}

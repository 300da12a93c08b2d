/**
 * A server that behaves like the reference implementation 1.3.5, as recorded: what it requires (REF-11), what it
 * rejects and its error texts (REF-14), and what it writes. It stores no message ids.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Payload {
  readonly task_id: string;
  readonly sender: { readonly address_type: string; readonly address: string };
  readonly recipient?: { readonly address: string };
  readonly recipients?: readonly { readonly address: string }[];
  readonly subject: string;
  readonly body: string;
}

export interface Wrapper {
  readonly message_id: string;
  readonly source_swarm: string;
  readonly target_swarm: string;
  readonly timestamp: string;
  readonly payload: Payload;
  readonly msg_type: string;
  readonly auth_token: string;
  readonly task_owner: string;
  readonly task_contributors: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

interface Task {
  readonly owner: string;
  contributors: string[];
  readonly remotes: Set<string>;
  completed: boolean;
}

const FIELDS: readonly [string, (value: unknown) => boolean][] = [
  ["message_id", (value) => typeof value === "string"],
  ["source_swarm", (value) => typeof value === "string"],
  ["target_swarm", (value) => typeof value === "string"],
  ["timestamp", (value) => typeof value === "string"],
  ["payload", (value) => typeof value === "object" && value !== null],
  ["msg_type", (value) => typeof value === "string"],
  ["auth_token", (value) => typeof value === "string"],
  ["task_owner", (value) => typeof value === "string"],
  ["task_contributors", (value) => Array.isArray(value)],
  ["metadata", (value) => typeof value === "object" && value !== null],
];

/** What the server does to the next request instead of answering normally. */
export type Mishap = "cut_before_answer" | "cut_before_reading" | "bad_gateway" | undefined;

export class PythonPeer {
  readonly name: string;
  /** Accepted messages, in order, with their route. */
  readonly taken: { way: "forward" | "back"; wrapper: Wrapper }[] = [];
  /** Answers to the messages it sent. */
  readonly answers: { way: string; status: number; body: unknown }[] = [];
  /** Reasons of rejected requests. */
  readonly refused: string[] = [];
  /** By URL of the swarms it has registered. */
  readonly registry = new Map<string, { url: string; token: string }>();
  mishaps: Mishap[] = [];
  /** Agents in addition to `weather`, which answers, and `supervisor`, which completes. */
  silent = new Set<string>(["mute"]);
  readonly #tasks = new Map<string, Task>();
  readonly #server: Server;
  #url = "";

  constructor(name: string) {
    this.name = name;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  get url(): string {
    return this.#url;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Its tasks are in memory only. */
  restart(): void {
    this.#tasks.clear();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const send = (status: number, body: unknown) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.url === "/") return send(200, this.#root());
    if (request.url === "/health") {
      return send(200, { status: "healthy", swarm_name: this.name, timestamp: now() });
    }
    const way =
      request.url === "/interswarm/forward"
        ? "forward"
        : request.url === "/interswarm/back"
          ? "back"
          : undefined;
    if (way === undefined) return send(404, { detail: "Not Found" });
    const mishap = this.mishaps.shift();
    if (mishap === "bad_gateway") return send(502, "<html>502 Bad Gateway</html>");
    if (mishap === "cut_before_reading") {
      request.socket.destroy();
      return;
    }
    const token = /^Bearer agent-token-(.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const [status, body] =
      token === undefined
        ? [401, { detail: "invalid role" }]
        : this.#receive(way, token, Buffer.concat(chunks));
    if (status !== 200) this.refused.push(`${way}: ${JSON.stringify(body)}`);
    if (mishap === "cut_before_answer") {
      request.socket.destroy();
      return;
    }
    send(status, body);
  }

  #root() {
    return {
      name: "mail",
      protocol_version: "1.3",
      swarm: {
        name: this.name,
        version: "1.3.5",
        description: "",
        entrypoint: "supervisor",
        keywords: [],
        public: true,
      },
      status: "running",
      uptime: 1.5,
    };
  }

  #receive(way: "forward" | "back", token: string, raw: Buffer): [number, unknown] {
    const { message } = JSON.parse(raw.toString()) as { message?: Record<string, unknown> };
    if (message === undefined) return [400, { detail: "parameter 'message' is required" }];
    for (const [field, fits] of FIELDS) {
      if (!(field in message)) return [400, { detail: `parameter '${field}' is required` }];
      if (!fits(message[field])) return [400, { detail: `parameter '${field}' must be of another type` }];
    }
    const wrapper = message as unknown as Wrapper;
    const { payload } = wrapper;
    const runner = `swarm:${token}@${this.name}`;
    // The receiving instance: a forward's belongs to the token, a back's is among the contributors.
    let instance = runner;
    if (way === "back") {
      const local = wrapper.task_contributors.find((contributor) => contributor.split("@")[1] === this.name);
      if (local === undefined) {
        return [404, { detail: `no mail instance found for task with id ${payload.task_id}` }];
      }
      if (!this.#tasks.has(payload.task_id)) return [400, { detail: "task is not running" }];
      instance = local;
    }
    const failed = (detail: string): [number, unknown] => [
      500,
      {
        detail: `server failed to receive interswarm ${way} message: error routing interswarm message: ${detail}`,
      },
    ];
    if (wrapper.target_swarm !== this.name)
      return failed(`received interswarm message for wrong swarm: '${wrapper.target_swarm}'`);
    const names = this.#localNames(payload);
    const unknown = names.find(
      (name) => name !== "supervisor" && name !== "weather" && !this.silent.has(name),
    );
    const router = `router failed to receive interswarm message ${way}`;
    if (unknown !== undefined) return failed(`${router}: unknown local agent: '${unknown}'`);
    const known = this.#tasks.get(payload.task_id);
    if (!wrapper.task_contributors.includes(instance)) {
      if (known !== undefined) {
        return failed(`${router}: a task with ID '${payload.task_id}' already exists in swarm memory`);
      }
      this.#tasks.set(payload.task_id, {
        owner: wrapper.task_owner,
        contributors: [...wrapper.task_contributors],
        remotes: new Set(),
        completed: false,
      });
    } else {
      if (known === undefined) return failed(`${router}: unknown task`);
      if (known.owner !== wrapper.task_owner) {
        return failed(
          `${router}: task owner mismatch: expected '${known.owner}', got '${wrapper.task_owner}'`,
        );
      }
      known.contributors = [...wrapper.task_contributors];
    }
    this.taken.push({ way, wrapper });
    for (const name of names) setImmediate(() => void this.#run(name, token, wrapper));
    return [200, { swarm: this.name, task_id: payload.task_id, status: "success", local_runner: runner }];
  }

  /** Recipients without `@`, or of other swarms, are skipped unchecked. */
  #localNames({ recipient, recipients }: Payload): string[] {
    return [...(recipient === undefined ? (recipients ?? []) : [recipient])]
      .filter(({ address }) => address.endsWith(`@${this.name}`))
      .map(({ address }) => address.split("@")[0] ?? "");
  }

  async #run(agent: string, peer: string, { payload }: Wrapper): Promise<void> {
    const task = this.#tasks.get(payload.task_id);
    if (task === undefined || this.silent.has(agent)) return;
    // Messages of agents to a completed task are dropped.
    if (task.completed && payload.subject !== "::task_complete::") task.completed = false;
    if (agent === "weather") {
      await this.send(payload.task_id, payload.sender.address, {
        from: agent,
        subject: `Re: ${payload.subject}`,
        body: "sunny, 21C",
      });
      return;
    }
    if (task.completed) return;
    task.completed = true;
    task.remotes.add(peer);
    for (const remote of task.remotes) {
      // It assumes that every swarm's entrypoint has the name of its own.
      await this.send(payload.task_id, `supervisor@${remote}`, {
        from: agent,
        subject: "::task_complete::",
        body: `[${payload.subject}] ${payload.body}`,
      });
    }
  }

  /** Like its router: nulls, its own ids, the token repeated in the body. */
  async send(
    taskId: string,
    target: string,
    {
      from,
      subject,
      body,
      type = "response",
    }: { from: string; subject: string; body: string; type?: string },
  ): Promise<void> {
    const swarm = target.split("@")[1] ?? "";
    const endpoint = this.registry.get(swarm);
    if (endpoint === undefined) return;
    let task = this.#tasks.get(taskId);
    if (task === undefined) {
      const owner = `user:bob@${this.name}`;
      task = { owner, contributors: [owner], remotes: new Set(), completed: false };
      this.#tasks.set(taskId, task);
    }
    const own = task.owner.endsWith(`@${this.name}`) ? task.owner : `swarm:${swarm}@${this.name}`;
    if (!task.contributors.includes(own)) task.contributors.push(own);
    task.remotes.add(swarm);
    const way = task.contributors.some((contributor) => contributor.endsWith(`@${swarm}`))
      ? "back"
      : "forward";
    const message = {
      message_id: randomUUID(),
      source_swarm: this.name,
      target_swarm: swarm,
      timestamp: now(),
      payload: {
        task_id: taskId,
        request_id: randomUUID(),
        sender: { address_type: "agent", address: `${from}@${this.name}` },
        recipient: { address_type: "agent", address: target },
        subject,
        body,
        sender_swarm: null,
        recipient_swarm: null,
        routing_info: { remote_swarm: swarm },
      },
      msg_type: type,
      auth_token: endpoint.token,
      task_owner: task.owner,
      task_contributors: [...task.contributors],
      metadata: {},
    };
    const answer = await fetch(`${endpoint.url}/interswarm/${way}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${endpoint.token}`,
        "user-agent": `MAIL-Interswarm-Router/${this.name}`,
      },
      body: JSON.stringify({ message }),
      // It drops what it cannot deliver.
    }).catch(() => undefined);
    if (answer !== undefined) this.answers.push({ way, status: answer.status, body: await answer.json() });
  }
}

/** Python's time format: microseconds and an offset. */
function now(): string {
  return new Date().toISOString().replace("Z", "321+00:00");
}

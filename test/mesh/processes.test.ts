/** Three real processes over real TLS: operations, members that are away, and SIGKILL. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { createGuard, createHttpClient, type HttpClient } from "../../src/net/index.js";
import { eventually, freePort } from "./kit.js";

interface Running {
  readonly name: string;
  readonly port: number;
  call(command: string, ...args: string[]): Promise<unknown>;
  kill(): Promise<void>;
}

// Real processes are slow to start on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let directory: string;
let tls: string;
let http: HttpClient;
const running = new Map<string, Running>();

async function start(name: string, port: number, listenPort = port): Promise<Running> {
  const script = new URL("./node-process.ts", import.meta.url).pathname;
  const child: ChildProcess = spawn(
    process.execPath,
    ["--import", "tsx", script, name, String(port), directory, tls, String(listenPort)],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  const ready = new Promise<unknown>((resolve, reject) => waiting.set(0, { resolve, reject }));
  if (child.stdout === null || child.stdin === null) throw new Error("no pipes");
  const input = child.stdin;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, value, error } = JSON.parse(line);
    const waiter = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) waiter?.resolve(value);
    else waiter?.reject(new Error(error));
  });
  let next = 0;
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const made: Running = {
    name,
    port,
    call(command, ...args) {
      next += 1;
      const id = next;
      input.write(`${JSON.stringify({ id, command, args })}\n`);
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
  running.set(name, made);
  await ready;
  return made;
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mesh-processes-"));
  tls = join(directory, "tls");
  makeDevCertificates(tls, Date.now());
  http = createHttpClient({
    clock: { after: (ms, callback) => clearTimeout.bind(undefined, setTimeout(callback, ms)) },
    guard: createGuard({ allow: ["loopback"] }),
    tls: { extraCaFile: join(tls, "dev-ca.pem") },
  });
});
afterAll(async () => {
  await Promise.all([...running.values()].map((one) => one.kill()));
  await http.close();
  await rm(directory, { recursive: true, force: true });
});

describe("three agents in three processes", () => {
  it("[ASP-OPER-06, ASP-OURS-04] join, talk, kick and transfer, with members away and killed in between", async () => {
    const ports = [await freePort(), await freePort(), await freePort()] as const;
    let [alice, bob, carol] = await Promise.all([
      start("alice", ports[0]),
      start("bob", ports[1]),
      start("carol", ports[2]),
    ]);
    const lab = String(await alice.call("create", "Lab"));
    await bob.call("join", String(await alice.call("invite", lab)));
    await carol.call("join", String(await alice.call("invite", lab)));
    const all = ["alice", "bob", "carol"];
    for (const agent of [alice, bob, carol]) {
      await eventually(() => agent.call("swarms"), [{ id: lab, master: "alice", members: all }]);
    }

    await alice.call("send", lab, "broadcast", "hello all");
    for (const agent of [bob, carol]) {
      await eventually(async () => texts(await agent.call("inbox")), ["hello all"]);
    }

    // Carol is killed; what is sent meanwhile waits, also when the sender is killed, too.
    await carol.kill();
    await alice.call("send", lab, "carol", "while you were away");
    await alice.call("transfer", lab, "bob");
    await eventually(() => bob.call("swarms"), [{ id: lab, master: "bob", members: all }]);
    await alice.kill();
    [alice, carol] = await Promise.all([start("alice", ports[0]), start("carol", ports[2])]);
    await alice.call("retry", `https://localhost:${ports[2]}`);
    await eventually(async () => texts(await carol.call("inbox")), ["hello all", "while you were away"]);
    await eventually(() => carol.call("swarms"), [{ id: lab, master: "bob", members: all }]);

    // The new master kicks somebody who is not there.
    await alice.kill();
    await bob.call("kick", lab, "alice");
    await eventually(() => carol.call("swarms"), [{ id: lab, master: "bob", members: ["bob", "carol"] }]);
    alice = await start("alice", ports[0]);
    await bob.call("retry", `https://localhost:${ports[0]}`);
    await eventually(() => alice.call("swarms"), []);

    await carol.call("leave", lab);
    await eventually(() => bob.call("swarms"), [{ id: lab, master: "bob", members: ["bob"] }]);
  });

  it("[ASP-OURS-04] a partition heals: what each did alone, all agree on afterwards", async () => {
    const wires = [await Wire.between(), await Wire.between(), await Wire.between()] as const;
    const [ann, ben, cleo] = await Promise.all([
      start("ann", wires[0].port, wires[0].target),
      start("ben", wires[1].port, wires[1].target),
      start("cleo", wires[2].port, wires[2].target),
    ]);
    const agents = [ann, ben, cleo];
    const lab = String(await ann.call("create", "Lab"));
    for (const agent of [ben, cleo]) await agent.call("join", String(await ann.call("invite", lab)));
    const all = ["ann", "ben", "cleo"];
    for (const agent of agents) {
      await eventually(() => agent.call("swarms"), [{ id: lab, master: "ann", members: all }]);
    }

    for (const wire of wires) wire.cut();
    await ann.call("send", lab, "broadcast", "from ann");
    await ann.call("transfer", lab, "ben");
    await ben.call("send", lab, "broadcast", "from ben");
    await cleo.call("send", lab, "broadcast", "from cleo");
    // Everybody tried, and is alone.
    await eventually(async () => wires.every(({ refused }) => refused > 0), true);
    for (const agent of agents) {
      expect(texts(await agent.call("inbox"))).toEqual([]);
      expect(await agent.call("swarms")).toEqual([{ id: lab, master: "ann", members: all }]);
    }

    for (const wire of wires) wire.mend();
    for (const agent of agents) {
      for (const wire of wires) await agent.call("retry", `https://localhost:${wire.port}`);
    }
    for (const agent of agents) {
      await eventually(() => agent.call("swarms"), [{ id: lab, master: "ben", members: all }]);
      const others = all.filter((name) => name !== agent.name).map((name) => `from ${name}`);
      await eventually(async () => texts(await agent.call("inbox")).sort(), others);
    }
    for (const wire of wires) await wire.close();
  });

  it("[ASP-OURS-02] G9: twenty races of five joiners over TLS have one winner each", async () => {
    const port = await freePort();
    const master = await start("master", port);
    for (let race = 0; race < 20; race += 1) {
      const id = String(await master.call("create", `Race ${race}`));
      const token = String(await master.call("invite", id, "1")).split("token=")[1];
      const answers = await Promise.all(
        Array.from({ length: 5 }, (_, index) => {
          const public_key = keyPairFromSeed(Buffer.alloc(32, index + 1)).publicKey.text;
          const sender = { agent_id: `j${index}`, endpoint: "https://localhost:1/swarm", public_key };
          const body = JSON.stringify({
            type: "system",
            action: "join_request",
            invite_token: token,
            sender,
          });
          return http.request(`https://localhost:${port}/swarm/join`, { method: "POST", body });
        }),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 403)).toHaveLength(4);
    }
  });

  it("[ASP-SECU-05] refuses a certificate that nobody vouches for", async () => {
    const port = running.get("master")?.port ?? 0;
    const strict = createHttpClient({
      clock: { after: (ms, callback) => clearTimeout.bind(undefined, setTimeout(callback, ms)) },
      guard: createGuard({ allow: ["loopback"] }),
    });
    await expect(strict.request(`https://localhost:${port}/swarm/info`)).rejects.toMatchObject({
      code: "tls_failed",
    });
    await strict.close();
  });
});

/** A wire to one agent that can be cut, while the agent lives on. */
class Wire {
  refused = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #whole = true;

  readonly port: number;
  readonly target: number;

  private constructor(port: number, target: number) {
    this.port = port;
    this.target = target;
    this.#server = createServer((socket) => this.#connect(socket));
  }

  static async between(): Promise<Wire> {
    const wire = new Wire(await freePort(), await freePort());
    await new Promise<void>((resolve) => wire.#server.listen(wire.port, "localhost", resolve));
    return wire;
  }

  cut(): void {
    this.#whole = false;
    for (const socket of this.#open) socket.destroy();
  }

  mend(): void {
    this.#whole = true;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #connect(socket: Socket): void {
    if (!this.#whole) {
      this.refused += 1;
      socket.destroy();
      return;
    }
    const onward = connect(this.target, "localhost");
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      this.#open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.#open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}

function texts(inbox: unknown): string[] {
  if (!Array.isArray(inbox)) return [];
  return inbox
    .filter(({ type }) => type === "message")
    .map(({ content }) => String(content))
    .reverse();
}

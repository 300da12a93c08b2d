/** Agents in their own processes, and links between them that can be cut. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import { freePort } from "./kit.js";

export interface Running {
  readonly name: string;
  readonly port: number;
  call(command: string, ...args: string[]): Promise<unknown>;
  kill(): Promise<void>;
}

/** The port that an agent calls instead of its peer's, where a link begins. */
export type Detours = Readonly<Record<number, number>>;

/** Agents that share a directory and a CA. */
export class Processes {
  readonly directory: string;
  readonly tls: string;
  readonly #running = new Map<string, Running>();

  /** A directory with existing certificates; its creator removes it. */
  constructor(directory: string) {
    this.directory = directory;
    this.tls = join(directory, "tls");
  }

  static async prepare(): Promise<Processes> {
    const processes = new Processes(await mkdtemp(join(tmpdir(), "mesh-processes-")));
    await makeDevCertificates(processes.tls, Date.now());
    return processes;
  }

  async start(name: string, port: number, detours: Detours = {}): Promise<Running> {
    const script = new URL("./agent-process.ts", import.meta.url).pathname;
    const child: ChildProcess = spawn(
      process.execPath,
      ["--import", "tsx", script, name, String(port), this.directory, this.tls, JSON.stringify(detours)],
      { stdio: ["pipe", "pipe", "inherit"] },
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
    exited.then(() => {
      for (const { reject } of waiting.values()) reject(new Error(`the process of ${name} has ended`));
    });
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
    this.#running.set(name, made);
    await ready;
    return made;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#running.values()].map((one) => one.kill()));
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** The link from one agent to another. Both continue when it is cut. */
export class Wire {
  /** How often a connection attempt found it cut. */
  refused = 0;
  readonly #target: number;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #whole = true;

  readonly port: number;

  private constructor(port: number, target: number) {
    this.port = port;
    this.#target = target;
    this.#server = createServer((socket) => this.#connect(socket));
  }

  static async to(target: number): Promise<Wire> {
    const wire = new Wire(await freePort(), target);
    await new Promise<void>((resolve) => wire.#server.listen(wire.port, "localhost", resolve));
    return wire;
  }

  cut(): void {
    this.refused = 0;
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
    const onward = connect(this.#target, "localhost");
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

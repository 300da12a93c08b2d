/** Servers in separate processes, which can be killed and restarted, and connections between them that can be cut. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Transform } from "node:stream";
import { type CallOptions, call, type Reply } from "../http/harness.js";
import type { ChildOptions } from "./child.js";

export { freePort } from "../kit/free-port.js";

/** One server across restarts. */
export class ServerProcess {
  readonly name: string;
  readonly url: string;
  readonly data: string;
  readonly #script: string;
  readonly #options: ChildOptions;
  #process: ChildProcess | undefined;
  stderr = "";
  lives = 0;

  constructor(script: string, options: Omit<ChildOptions, "data"> & { readonly data?: string }) {
    this.#script = script;
    this.data = options.data ?? mkdtempSync(join(tmpdir(), `mailroom-${options.name}-`));
    this.#options = { ...options, data: this.data };
    this.name = options.name;
    this.url = `http://127.0.0.1:${options.port}`;
  }

  async start(): Promise<void> {
    const env: Record<string, string> = { PATH: process.env.PATH ?? "" };
    for (const other of this.#options.others) {
      env[`SWARM_AUTH_TOKEN_${other.toUpperCase()}`] = `agent:${this.name}`;
    }
    const child = spawn(process.execPath, [this.#script, JSON.stringify(this.#options)], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    this.lives++;
    child.stderr?.on("data", (text: Buffer) => {
      this.stderr += text.toString();
    });
    await new Promise<void>((resolve, reject) => {
      child.stdout?.once("data", () => resolve());
      child.once("exit", () => reject(new Error(`${this.name} ended before it was ready:\n${this.stderr}`)));
    });
  }

  /** SIGKILL leaves no time to clean up. */
  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  /** Releases the answers that its slow agent holds. */
  release(): void {
    this.#process?.kill("SIGUSR2");
  }

  call(path: string, options: CallOptions = {}): Promise<Reply> {
    return call(this.url, path, options);
  }

  /** Registers like an admin: persistent, with the token in the environment. */
  async register(name: string, url: string): Promise<void> {
    const token = ["$", `{SWARM_AUTH_TOKEN_${name.toUpperCase()}}`].join("");
    const json = { name, base_url: url, auth_token: token, volatile: false };
    const answer = await this.call("/swarms", { token: "admin:root", json });
    if (answer.status !== 200) throw new Error(`${this.name} did not register ${name}: ${answer.text}`);
  }

  remove(): void {
    rmSync(this.data, { recursive: true, force: true });
  }
}

/** A connection to a server that can be cut during a transfer. */
export class Wire {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #url = "";

  /** @param delay milliseconds by which the next piece of data is late */
  constructor(port: number, delay: () => number = () => 0) {
    this.#server = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on("close", () => this.#sockets.delete(socket));
        socket.on("error", () => {});
      }
      pipe(near, far, delay);
      pipe(far, near, delay);
      near.on("close", () => far.destroy());
      far.on("close", () => near.destroy());
    });
  }

  get url(): string {
    return this.#url;
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (address !== null && typeof address !== "string") this.#url = `http://127.0.0.1:${address.port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Passes data on, each piece late and all in order. */
function pipe(from: Socket, to: Socket, delay: () => number): void {
  const late = new Transform({
    transform(chunk, _encoding, done) {
      const ms = delay();
      if (ms === 0) done(null, chunk);
      else setTimeout(() => done(null, chunk), ms);
    },
  });
  late.on("error", () => {});
  from.pipe(late).pipe(to);
}

/** `mailroom server` from the benchmark's build, in its own process. */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface ServerProcess {
  readonly url: URL;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface ServerProcessOptions {
  /** Arguments after `server --json --port 0`. */
  readonly words: readonly string[];
  readonly directory: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Flags for Node itself. */
  readonly flags?: readonly string[];
  /**
   * Another server that prints its URL in the same form. Default: the `mailroom` command of the benchmark's build.
   */
  readonly program?: string;
}

export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const { words, directory, env = {}, flags = [], program: name = "./http-server.js" } = options;
  // The program reads its version from the package two folders up.
  copyFileSync("package.json", join(".bench", "package.json"));
  const program = fileURLToPath(new URL(name, import.meta.url));
  const child = spawn(process.execPath, [...flags, program, "server", "--json", "--port", "0", ...words], {
    cwd: directory,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  // Output of a stopping server is dropped, unless it stops because of an error.
  let complaints = "";
  child.stderr.on("data", (chunk) => {
    complaints += String(chunk);
  });
  child.once("exit", (code) => {
    if (code !== 0) process.stderr.write(complaints);
  });
  const facts: unknown = JSON.parse(await firstLine(child));
  if (typeof facts !== "object" || facts === null || !("url" in facts)) throw new Error("no server");
  return {
    url: new URL(String(facts.url)),
    pid: child.pid ?? 0,
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    },
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    if (child.stdout !== null) createInterface({ input: child.stdout }).once("line", resolve);
  });
}

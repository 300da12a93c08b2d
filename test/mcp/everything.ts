/** Starts the official MCP test server over both transports. */
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { freePort } from "../kit/free-port.js";

export const PROGRAM = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/server-everything/dist/index.js",
);

export const STDIO = { command: process.execPath, args: [PROGRAM, "stdio"] };

export interface HttpServer {
  readonly url: string;
  readonly process: ChildProcess;
  stop(): Promise<void>;
}

/** @param port to restart it on the same port */
export async function startHttpServer(port?: number): Promise<HttpServer> {
  const free = port ?? (await freePort());
  const child = spawn(process.execPath, [PROGRAM, "streamableHttp"], {
    env: { ...process.env, PORT: String(free) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on("data", (chunk: unknown) => {
      if (String(chunk).includes("listening")) resolve();
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return {
    url: `http://127.0.0.1:${free}/mcp`,
    process: child,
    stop: () => killed(child),
  };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

/** Runs the real command line in its own process. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD = join(ROOT, "node_modules", `.mailroom-cli-${process.pid}`);
let built: Promise<string> | undefined;

afterAll(() => rm(BUILD, { recursive: true, force: true }));

/**
 * The source is compiled once, because compiling it for every run would take longest. The output is two folders below
 * the package, like `dist/cli`.
 */
export function entry(): Promise<string> {
  built ??= buildEntry();
  return built;
}

async function buildEntry(): Promise<string> {
  await build({
    entryPoints: [join(ROOT, "test", "cli", "entry.ts")],
    outdir: BUILD,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    packages: "external",
    outExtension: { ".js": ".mjs" },
  });
  return join(BUILD, "entry.mjs");
}

/** The program and its arguments, for tests that start it themselves. */
export async function command(args: readonly string[]): Promise<string[]> {
  return [process.execPath, await entry(), ...args];
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function start(
  args: readonly string[],
  { cwd, env }: RunOptions,
): Promise<ChildProcessWithoutNullStreams> {
  // Isolates the test from the machine's environment.
  const clean = { PATH: process.env.PATH ?? "", HOME: cwd, ...env };
  return spawn(process.execPath, [await entry(), ...args], { cwd, env: clean });
}

/**
 *
 * @param onNote receives each line of standard error as it is written
 */
export async function run(
  args: readonly string[],
  options: RunOptions,
  onNote: (line: string) => void = () => {},
): Promise<Finished> {
  const child = await start(args, options);
  createInterface({ input: child.stderr }).on("line", onNote);
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += String(chunk);
  });
  child.stderr.on("data", (chunk) => {
    stderr += String(chunk);
  });
  child.stdin.end(options.input ?? "");
  return new Promise((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

export interface Started extends AsyncDisposable {
  readonly child: ChildProcessWithoutNullStreams;
  /** The server's line of JSON. */
  readonly facts: {
    readonly url: string;
    readonly data: string;
    readonly admin_token?: string;
    readonly recovered: number;
  };
  readonly url: string;
  readonly ended: Promise<Finished>;
}

/**
 * Starts `mailroom server --json` on a free port and waits until it serves.
 * @param onNote receives each other line as it is written
 */
export async function serve(
  args: readonly string[],
  options: RunOptions,
  onNote: (line: string) => void = () => {},
): Promise<Started> {
  const child = await start(["server", "--json", "--port", "0", ...args], options);
  createInterface({ input: child.stderr }).on("line", onNote);
  let stdout = "";
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += String(chunk);
  });
  const ended = new Promise<Finished>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const first = await new Promise<string>((resolve, reject) => {
    const lines = createInterface({ input: child.stdout });
    lines.on("line", (line) => {
      stdout += `${line}\n`;
      resolve(line);
    });
    ended.then(() => reject(new Error(`the server did not start: ${stderr}`)));
  });
  const facts = JSON.parse(first);
  return {
    child,
    facts,
    url: facts.url,
    ended,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

export interface Folder extends AsyncDisposable {
  readonly path: string;
}

export async function folder(): Promise<Folder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "mailroom-cli-")));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

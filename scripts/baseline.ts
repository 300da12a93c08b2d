/**
 * Records the public surface of this program: the HTTP interface of a server with everything enabled, the help of every
 * command, and the settings with their defaults. `test/cli/baseline.test.ts` compares it with the stored one, so that
 * changes are deliberate.
 *
 *   npx tsx scripts/baseline.ts           write test/data/baseline
 *   npx tsx scripts/baseline.ts --check   fail if something differs
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import pico from "picocolors";
import { main } from "../src/cli/main.js";
import type { Terminal } from "../src/cli/terminal.js";

const ROOT = join(import.meta.dirname, "..");
const FOLDER = join(ROOT, "test", "data", "baseline");

/** File name and current text of each part. */
export async function currentBaseline(): Promise<Record<string, string>> {
  return {
    "config.txt": await settings(),
    "help.txt": (await helpOf([])).join("\n"),
    "openapi.json": pretty(await openApi()),
  };
}

/**
 *
 * @returns the stored text, or an empty one
 */
export function storedBaseline(name: string): string {
  try {
    return readFileSync(join(FOLDER, name), "utf8");
  } catch {
    return "";
  }
}

/** Sorts keys, so that only content differs. */
function pretty(value: unknown): string {
  const sorted = (_: string, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each;
  return `${JSON.stringify(value, sorted, 1)}\n`;
}

/** Returns the standard output of a command, in a process without settings of its own. */
async function run(args: readonly string[]): Promise<string> {
  let output = "";
  const terminal: Terminal = {
    env: {},
    stdin: process.stdin,
    colors: pico.createColors(false),
    interactive: false,
    columns: 100,
    out: (line = "") => {
      output += `${line}\n`;
    },
    write: (text) => {
      output += text;
    },
    note: () => {},
    json: (value) => {
      output += JSON.stringify(value);
    },
  };
  const { stdout } = process;
  const { write, isTTY } = stdout;
  // Commander prints help in the width of the terminal.
  stdout.isTTY = false;
  stdout.write = (chunk: string | Uint8Array) => {
    output += String(chunk);
    return true;
  };
  try {
    await main(args, terminal);
  } finally {
    stdout.write = write;
    stdout.isTTY = isTTY;
  }
  return output;
}

/** One line per setting, in order of the keys. */
async function settings(): Promise<string> {
  const { settings } = JSON.parse(await run(["config", "--json"]));
  const lines = settings.map(
    ({ key, value, source }: Record<string, string>) => `${key} = ${value} (${source})`,
  );
  return `${lines.sort().join("\n")}\n`;
}

/** The help of a command and of its subcommands. */
async function helpOf(words: readonly string[]): Promise<string[]> {
  const help = await run([...words, "--help"]);
  const listed = /^Commands:\n((?: .*\n)*)/m.exec(help)?.[1] ?? "";
  const below = [...listed.matchAll(/^ {2}([a-z][\w-]*)/gm)].flatMap(([, name]) =>
    name === undefined || name === "help" ? [] : [name],
  );
  const pages = [`$ ${["mailroom", ...words, "--help"].join(" ")}\n${help}`];
  for (const name of below) pages.push(...(await helpOf([...words, name])));
  return pages;
}

async function openApi(): Promise<unknown> {
  const data = mkdtempSync(join(tmpdir(), "mailroom-baseline-"));
  const endpoint = ["--endpoint", "https://localhost:8443/swarm", "--dev"];
  await run(["mesh", "init", "--data", data, "--agent-id", "baseline", ...endpoint]);
  await run(["mesh", "dev-ca", "--data", data]);
  const everything = ["--dev", "--data", data, "--mesh-listen", "127.0.0.1:0"];
  const server = spawn(
    process.execPath,
    ["--import", "tsx", "test/cli/entry.ts", "server", "--json", "--port", "0", ...everything],
    { cwd: ROOT, env: { PATH: process.env.PATH, HOME: data }, stdio: ["ignore", "pipe", "inherit"] },
  );
  const ended = new Promise((resolve) => server.once("close", resolve));
  try {
    const { value } = await createInterface({ input: server.stdout })[Symbol.asyncIterator]().next();
    const response = await fetch(`${JSON.parse(value).url}/openapi.json`, {
      headers: { authorization: "Bearer admin:baseline" },
    });
    return await response.json();
  } finally {
    server.kill("SIGKILL");
    await ended;
    rmSync(data, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const differing = Object.entries(await currentBaseline()).filter(
    ([name, text]) => storedBaseline(name) !== text,
  );
  for (const [name, text] of differing) {
    if (process.argv.includes("--check")) {
      console.error(`test/data/baseline/${name} differs: run npx tsx scripts/baseline.ts`);
      process.exitCode = 1;
    } else {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(join(FOLDER, name), text);
      console.log(`test/data/baseline/${name} written`);
    }
  }
}

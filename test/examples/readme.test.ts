/** What the documents print is what works: their programs run, and the README's test command is the one that CI runs. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");

/** Complete programs, each under a comment with a regular expression for what it prints. */
const PROGRAM = /<!-- prints: (?<printed>.+?) -->\n```ts\n(?<program>[\s\S]*?)```/g;
/** A program that serves until it is stopped, and one that calls it. */
const SERVER = /<!-- serves -->\n```ts\n(?<program>[\s\S]*?)```/;
const CLIENT = /<!-- calls, prints: (?<printed>.+?) -->\n```ts\n(?<program>[\s\S]*?)```/;

const programs = ["README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)]
  .filter((page) => page.endsWith(".md"))
  .flatMap((page) =>
    [...readFileSync(join(ROOT, page), "utf8").matchAll(PROGRAM)].map(({ groups }, index) => ({
      title: `${page}, program ${index + 1}`,
      program: groups?.program ?? "",
      printed: groups?.printed ?? "",
    })),
  );

const RUN = ["--import", "tsx", "main.mts"];

/** A folder where `node` with the arguments RUN runs the program. */
function folderOf(program: string): string {
  // Beside node_modules, where imports are found; the program writes its data into its working directory.
  const cache = join(ROOT, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, "readme-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(ROOT, join(directory, "node_modules", "agent-mailroom"));
  writeFileSync(join(directory, "main.mts"), program);
  return directory;
}

async function run(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, RUN, { cwd: folderOf(program) });
  return stdout.trim();
}

it("the README begins with a program that is tested", () => {
  expect(programs[0]?.title).toBe("README.md, program 1");
  expect(README.indexOf("```ts")).toBe(README.indexOf(programs[0]?.program ?? "missing") - "```ts\n".length);
});

it.each(programs)("$title prints what the page says", async ({ program, printed }) => {
  expect(await run(program)).toMatch(new RegExp(`^${printed}$`));
});

it("the README's server answers the README's client, and ends with SIGTERM", async () => {
  const server = SERVER.exec(README)?.groups?.program ?? "";
  const client = CLIENT.exec(README)?.groups;
  const child = spawn(process.execPath, RUN, { cwd: folderOf(server.replace("port: 8000", "port: 0")) });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [url] = await once(child.stdout, "data");
  const calling = (client?.program ?? "").replace("http://127.0.0.1:8000", String(url).trim());
  expect(await run(calling)).toMatch(new RegExp(`^${client?.printed}$`));
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

it("CI runs the README's second command", () => {
  const command = /<!-- test-command -->\n```sh\n(.+)\n```/.exec(README)?.[1];
  expect(command).toBe("npm ci && npm test");
  expect(readFileSync(join(ROOT, ".ci/run"), "utf8")).toContain("<!-- test-command -->");
});

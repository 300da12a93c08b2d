/** Runs the commands of docs/federation.md as written. */
import { readFileSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { type Finished, folder, run, type Started, serve } from "./cli.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DOCUMENT = readFileSync(join(ROOT, "docs", "federation.md"), "utf8");
const PORTS = ["8101", "8102"] as const;

/** The commands of each block, without `npx mailroom`, with the variables before them. */
const blocks = [...DOCUMENT.matchAll(/```sh\n(.*?)```/gs)].map(([, text = ""]) =>
  text
    .replaceAll("\\\n", " ")
    .trim()
    .split("\n")
    .map((line) => {
      const [before = "", after = ""] = line.split("npx mailroom ");
      const env = Object.fromEntries(
        [...before.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
      );
      const words = [...after.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
      return { env, words };
    }),
);

it("a question reaches another swarm, and waits for a server that is down", {
  timeout: 180_000,
}, async () => {
  await using here = await folder();
  const cwd = here.path;
  await symlink(join(ROOT, "examples"), join(cwd, "examples"));
  const [alphas = [], betas = [], crossing = [], waiting = []] = blocks;
  /** On a free port, unless it must return to its old one. */
  const start = ([terminal]: typeof alphas, port?: string): Promise<Started> => {
    const [, ...words] = terminal?.words ?? [];
    const args = words.map((word) => (PORTS.some((one) => one === word) ? (port ?? "0") : word));
    return serve(args, { cwd, env: terminal?.env ?? {} });
  };
  await using alpha = await start(alphas);
  const beta = await start(betas);
  const paste = async (commands: typeof crossing): Promise<Finished[]> => {
    const urls = [alpha.url, beta.url];
    const there = (word: string) =>
      PORTS.reduce((text, port, index) => text.replace(`http://127.0.0.1:${port}`, urls[index] ?? ""), word);
    const done: Finished[] = [];
    for (const { words } of commands) done.push(await run(words.map(there), { cwd }));
    expect(done.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      done.map(() => ({ code: 0, stderr: "" })),
    );
    return done;
  };
  expect((await paste(crossing)).at(-1)?.stdout).toContain("Moby-Dick was published in 1851.");

  await beta[Symbol.asyncDispose]();
  expect((await paste(waiting)).at(-1)?.stdout).toMatch(/ running /);
  await using _again = await start(betas, new URL(beta.url).port);
  const list = waiting.at(-1);
  for (;;) {
    const [tasks] = await paste(list === undefined ? [] : [list]);
    if (tasks?.stdout.includes(" running ") === false) {
      expect(tasks.stdout.match(/ completed /g)).toHaveLength(2);
      return;
    }
  }
});

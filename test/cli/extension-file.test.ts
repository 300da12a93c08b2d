/** Extensions that `mailroom server` loads from a file. */
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { folder, run, serve } from "./cli.js";

const SERVER = resolve(import.meta.dirname, "../../src/server/index.ts");

const EXTENSION = `
import { defineExtension, definePublicRoute, defineSettings, NO_INPUT, PUBLIC, text } from ${JSON.stringify(SERVER)};
export default defineExtension({
  name: "greeting",
  settings: defineSettings({ words: text("greeting.words", { default: "hello", doc: "What is said." }) }),
  create: ({ settings }) => ({
    routes: [
      definePublicRoute({
        ...NO_INPUT,
        id: "greet",
        method: "GET",
        path: "/greeting",
        tag: "server",
        summary: "A greeting",
        access: PUBLIC,
        answers: { 200: { description: "The greeting." } },
        handle: async () => ({ status: 200, body: { words: settings.words } }),
      }),
    ],
  }),
});
`;

describe("an extension of one's own", { timeout: 180_000 }, () => {
  it("is served, with its settings in mail.toml", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "greeting.ts"), EXTENSION);
    await writeFile(
      join(cwd, "mail.toml"),
      '[server]\nextensions = ["./greeting.ts"]\n\n[greeting]\nwords = "good morning"\n',
    );
    await using server = await serve(["--dev"], { cwd });
    expect(await (await fetch(`${server.url}/greeting`)).json()).toEqual({ words: "good morning" });

    // Other commands read the same file, and do not load the extension.
    expect(await run(["tasks", "list"], { cwd })).toMatchObject({ code: 0 });
    const { stdout } = await run(["config", "--changed"], { cwd });
    expect(stdout).toMatch(/greeting\.words +good morning +.*mail\.toml:5/);
  });

  it("causes an error for an unknown setting, an unknown file and a module without an extension", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "greeting.ts"), EXTENSION);
    await writeFile(join(cwd, "empty.js"), "export default {};\n");
    await writeFile(join(cwd, "mail.toml"), '[greeting]\nword = "hi"\n');
    const failing = async (...words: string[]) => run(["server", "--dev", "--port", "0", ...words], { cwd });
    expect(await failing("--extension", "./greeting.ts")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/mail\.toml:2.*unknown key 'greeting\.word'.*'words'/s),
    });
    expect((await failing()).stderr).toContain("unknown key 'greeting'");
    expect((await failing("--extension", "./none.js")).stderr).toContain("no file './none.js'");
    expect((await failing("--extension", "./empty.js")).stderr).toContain("is not an extension");
  });

  it("and a swarm file that cannot be read are reported with what to do", async () => {
    await using here = await folder();
    const cwd = here.path;
    await writeFile(join(cwd, "broken.mjs"), "broken(\n");
    const failing = async (...words: string[]) => run(["server", "--dev", "--port", "0", ...words], { cwd });
    expect(await failing("--swarm", "missing.json")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/missing\.json.*it cannot be read: no such file/s),
    });
    expect(await failing("--extension", "./broken.mjs")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /'\.\/broken\.mjs' could not be loaded.*Correct the reference, or the module/s,
      ),
    });
  });
});

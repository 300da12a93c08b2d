/** `mailroom swarms` with real servers. */
import { writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import { folder, run, type Started, serve } from "./cli.js";

const SWARMS = fileURLToPath(new URL("../../examples/two-swarms/swarms.json", import.meta.url));

function swarm(name: string, cwd: string, env: Record<string, string> = {}): Promise<Started> {
  const data = join(cwd, name);
  return serve(["--dev", "--swarm", SWARMS, "--swarm-name", name, "--data", data], { cwd, env });
}

/** Lists one more swarm, at an address without a server. */
async function hub(): Promise<string> {
  const server = createHttpServer((request, response) => {
    const swarms = [{ swarm_name: "delta", base_url: "http://127.0.0.1:9", auth_token: "theirs" }];
    response.end(JSON.stringify(request.url === "/swarms" ? { swarms } : {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Discovers swarms at the given server and reports the result. */
const FINDER = `export const finder = () => (turn) => {
  const [result] = turn.results;
  if (result !== undefined) {
    return { calls: [{ id: "2", name: "task_complete", args: { finish_message: result.content } }] };
  }
  const args = { discovery_urls: [turn.messages[0].message.body] };
  return { calls: [{ id: "1", name: "discover_swarms", args }] };
};
`;

describe("mailroom swarms", { timeout: 180_000 }, () => {
  it("[MAIL-REST-09] registers swarms so that mail reaches them, lists, checks and removes them", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using alpha = await swarm("alpha", cwd, { BETA_TOKEN: "agent:alpha" });
    const at = ["--data", alpha.facts.data];
    const words = (...args: string[]) => run(["swarms", ...args, ...at], { cwd });

    const none = await words("list");
    expect(none).toMatchObject({ code: 0, stdout: "", stderr: expect.stringContaining("swarms add") });
    expect(await words("ping")).toEqual(none);

    const beta = await swarm("beta", cwd, { SWARM_AUTH_TOKEN_ALPHA: "agent:beta" });
    expect(await words("add", "beta", beta.url, "--token-env", "BETA_TOKEN")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^beta {2}active .*http:\/\/127\.0\.0\.1:\d+\n$/),
    });
    const back = ["swarms", "add", "alpha", alpha.url, "--data", beta.facts.data, "--volatile", "--json"];
    const added = await run(back, { cwd });
    expect(JSON.parse(added.stdout)).toMatchObject({
      swarm_name: "alpha",
      is_active: true,
      volatile: true,
      auth_state: "ready",
    });
    const answer = await new MailClient(alpha.url).postMessage("When was Moby-Dick published?");
    expect(answer.response).toContain("1851");

    const listed = JSON.parse((await words("list", "--json")).stdout);
    expect(listed.swarms).toEqual([
      expect.objectContaining({
        swarm_name: "beta",
        auth_ref: ["$", "{BETA_TOKEN}"].join(""),
        volatile: false,
      }),
    ]);
    expect(await words("ping")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^beta {2}healthy {2}\d+ ms\n$/),
    });

    await beta[Symbol.asyncDispose]();
    const dead = await words("ping", "beta", "--json");
    expect(dead.code).toBe(1);
    expect(JSON.parse(dead.stdout).swarms).toEqual([
      expect.objectContaining({ swarm_name: "beta", ok: false, latency: null, reason: expect.any(String) }),
    ]);

    expect(await words("remove", "beta")).toMatchObject({ code: 0, stdout: "removed\n" });
    expect(JSON.parse((await words("list", "--json")).stdout)).toEqual({ swarms: [] });
    const again = await words("remove", "beta");
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("no swarm named 'beta'") });
  });

  it("stores an unreachable swarm and reports what is missing", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using alpha = await swarm("alpha", cwd);
    const at = ["--data", alpha.facts.data];
    const add = (...more: string[]) =>
      run(["swarms", "add", "far-off", "http://127.0.0.1:9", ...more, ...at], { cwd });
    const added = await add();
    expect(added.code).toBe(0);
    expect(added.stdout).toContain("far-off  inactive");
    expect(added.stderr).toContain("it does not answer");
    expect(added.stderr).toContain("SWARM_AUTH_TOKEN_FAR_OFF is not set in the server's environment");
    const literal = await add("--auth-token", "s3cret", "--json");
    expect(JSON.parse(literal.stdout)).toMatchObject({ auth_state: "ready" });
    expect(literal.stdout + literal.stderr).not.toContain("s3cret");
    expect((await add("--no-auth")).stdout).toContain("no token");
  });

  it("accepts and rejects proposals of discovery", async () => {
    await using here = await folder();
    const cwd = here.path;
    const url = await hub();
    await writeFile(join(cwd, "finder.mjs"), FINDER);
    await writeFile(join(cwd, "mail.toml"), '[federation]\nallow = ["loopback"]\n');
    const finder = { name: "finder", factory: "module:./finder.mjs#finder", comm_targets: [] };
    const rights = { enable_entrypoint: true, enable_interswarm: true, can_complete_tasks: true };
    const swarms = [
      {
        name: "seekers",
        version: "1.0.0",
        entrypoint: "finder",
        enable_interswarm: true,
        agents: [{ ...finder, ...rights }],
      },
    ];
    await writeFile(join(cwd, "swarms.json"), JSON.stringify(swarms));
    await using server = await serve(["--dev"], { cwd });
    const words = (...args: string[]) => run(["swarms", ...args], { cwd });
    const seek = () => new MailClient(server.url).postMessage(url);
    expect((await seek()).response).toContain("proposed; an admin must accept: delta");
    expect(JSON.parse((await words("list", "--json")).stdout)).toEqual({ swarms: [] });

    expect((await words("proposals")).stdout).toContain(`delta  http://127.0.0.1:9  listed by ${url}`);
    expect(await words("reject", "delta")).toMatchObject({ code: 0, stdout: "rejected\n" });
    expect(JSON.parse((await words("proposals", "--json")).stdout)).toEqual({ proposals: [] });
    expect(await words("accept", "delta")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("no swarm named 'delta' is proposed"),
    });

    await seek();
    const accepted = JSON.parse((await words("accept", "delta", "--json")).stdout);
    // Persistent, with a token of the operator's choice: the remote server's suggestion is dropped.
    expect(accepted).toMatchObject({
      swarm_name: "delta",
      base_url: "http://127.0.0.1:9",
      volatile: false,
      auth_ref: ["$", "{SWARM_AUTH_TOKEN_DELTA}"].join(""),
    });
    expect(JSON.parse((await words("proposals", "--json")).stdout)).toEqual({ proposals: [] });
  });

  it.each([
    ["no name", ["add"], 2, "name"],
    [
      "two tokens",
      ["add", "b", "http://127.0.0.1:9", "--token-env", "A", "--no-auth"],
      2,
      "exclude each other",
    ],
    [
      "a token instead of a variable's name",
      ["add", "b", "http://127.0.0.1:9", "--token-env", "$A"],
      2,
      "--token-env BETA_TOKEN",
    ],
    ["no server", ["list"], 3, "mailroom server"],
    ["an unreachable server", ["list", "--url", "http://127.0.0.1:9"], 3, "check the URL"],
  ])("%s: reports the problem", async (_, args, code, reason) => {
    await using here = await folder();
    const finished = await run(["swarms", ...args], { cwd: here.path });
    expect(finished.code).toBe(code);
    expect(finished.stderr).toContain(reason);
    expect(finished.stderr).not.toContain("    at ");
  });

  it("[MAIL-SEC-03] is for admins on a remote server", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using alpha = await swarm("alpha", cwd);
    const as = (token: string) =>
      run(["swarms", "remove", "beta", "--url", alpha.url, "--token", token, "--json"], { cwd });
    const user = await as("user:ann");
    expect(user.code).toBe(4);
    expect(JSON.parse(user.stderr).error).toMatchObject({ code: "forbidden" });
    const admin = await as("admin:root");
    expect(admin.code).toBe(1);
    expect(JSON.parse(admin.stderr).error).toMatchObject({ code: "unknown_swarm" });
  });

  it("[MAIL-SEC-01] and mail between swarms use TLS, with a configured CA", async () => {
    await using here = await folder();
    const { ca, cert, key } = await makeDevCertificates(here.path, Date.now());
    await using outside = await folder();
    const stranger = await makeDevCertificates(outside.path, Date.now());
    const settings = (authority: string) =>
      `[server.tls]\ncert = "${cert}"\nkey = "${key}"\n[federation]\nca = "${authority}"\n`;
    await writeFile(join(here.path, "mail.toml"), settings(ca));
    await writeFile(join(outside.path, "mail.toml"), settings(stranger.ca));
    await using alpha = await swarm("alpha", here.path, { SWARM_AUTH_TOKEN_BETA: "agent:alpha" });
    await using beta = await swarm("beta", here.path, { SWARM_AUTH_TOKEN_ALPHA: "agent:beta" });
    expect(beta.url).toMatch(/^https:/);
    const at = (server: Started, ...words: string[]) =>
      run(["swarms", ...words, "--data", server.facts.data], { cwd: here.path });
    expect((await at(alpha, "add", "beta", beta.url)).stdout).toContain("beta  active");
    expect((await at(beta, "add", "alpha", alpha.url)).stdout).toContain("alpha  active");
    const ask = (env: Record<string, string>) =>
      run(["client", alpha.url, "message", "When was Moby-Dick published?"], { cwd: here.path, env });
    expect((await ask({ NODE_EXTRA_CA_CERTS: ca })).stdout).toContain("1851");
    // Without it, the hint explains what to do, and a server that does not trust the CA is rejected.
    expect(await ask({})).toMatchObject({ code: 3, stderr: expect.stringContaining("NODE_EXTRA_CA_CERTS") });
    await using doubting = await swarm("alpha", outside.path);
    expect((await at(doubting, "add", "beta", beta.url)).stderr).toContain("it does not answer");
    expect(await at(doubting, "ping")).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/beta {2}no answer .*certificate/),
    });
  });

  it("and other commands explain when an https URL reaches a server without TLS", async () => {
    await using here = await folder();
    const cwd = here.path;
    await using alpha = await swarm("alpha", cwd);
    const { host } = new URL(alpha.url);
    for (const url of [`https://${host}`, `swarm://connect?server=${host}`]) {
      const { code, stderr } = await run(["ping", url], { cwd });
      expect(code).toBe(3);
      expect(stderr).toContain(`does not use TLS: use ${alpha.url}`);
    }
  });
});

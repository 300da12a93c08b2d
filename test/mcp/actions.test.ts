/** Uses a real MCP server through actions, over stdio and streamable HTTP, in whole tasks. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  connectMcpServer,
  defineAgent,
  defineSwarm,
  loadSwarmsFromText,
  Mailroom,
  type McpServer,
  mcpActions,
} from "../../src/index.js";
import { defaultBuiltins } from "../../src/library/index.js";
import { actionContext } from "../../src/testing/action-context.js";
import { type HttpServer, STDIO, startHttpServer } from "./everything.js";

let http: HttpServer;
let overStdio: McpServer;
let overHttp: McpServer;
beforeAll(async () => {
  http = await startHttpServer();
  [overStdio, overHttp] = await Promise.all([
    connectMcpServer({ name: "everything", ...STDIO, env: { GREETING: "hello" } }),
    connectMcpServer({ name: "everything", url: http.url, allow: ["loopback"] }),
  ]);
});
afterAll(async () => {
  await Promise.all([overStdio?.close(), overHttp?.close()]);
  await http?.stop();
});

/** Calls the action and arguments in the user's message. */
const swarmWith = (server: McpServer) =>
  defineSwarm({
    name: "tools",
    agents: [
      defineAgent({
        name: "caller",
        enableEntrypoint: true,
        canCompleteTasks: true,
        actions: server.actions,
        run: (mail) => {
          if (mail.result !== undefined) return mail.complete(`${mail.result.ok} ${mail.result.content}`);
          const { name, args } = JSON.parse(mail.body);
          mail.act(String(name), args);
        },
      }),
    ],
  });

async function call(server: McpServer, name: string, args: object): Promise<string> {
  const mailroom = await Mailroom.open({ swarm: swarmWith(server), data: false });
  const { response } = await mailroom.user("ann").ask(JSON.stringify({ name, args }));
  await mailroom.close();
  return response;
}

describe.each([
  ["stdio", () => overStdio],
  ["streamable HTTP", () => overHttp],
])("over %s", (_name, server) => {
  it("[AGT-TOOL-01] tools are actions with their schema and description", async () => {
    const sum = server().actions.find(({ name }) => name === "everything__get-sum");
    expect(sum).toMatchObject({
      description: expect.stringContaining("sum"),
      parameters: { type: "object", required: ["a", "b"] },
      timeLimit: 600_000,
    });
    expect(await call(server(), "everything__get-sum", { a: 2, b: 40 })).toBe(
      "true The sum of 2 and 40 is 42.",
    );
    expect(await call(server(), "everything__get-sum", { a: "two" })).toMatch(/^false invalid arguments: /);
    expect(await call(server(), "everything__get-tiny-image", {})).toContain("(image, image/png, ");
  });

  it("[AGT-TOOL-02] prompts and resources can be read", async () => {
    expect(await call(server(), "everything__list_prompts", {})).toContain("args-prompt(city, state)");
    const args = { prompt_name: "args-prompt", arguments: { city: "Oslo" } };
    expect(await call(server(), "everything__get_prompt", args)).toContain("What's weather in Oslo?");
    const listed = await call(server(), "everything__list_resources", {});
    const uri = /(demo:\S+features\.md)/.exec(listed)?.[1];
    expect(await call(server(), "everything__read_resource", { uri })).toContain("#");
    expect(await call(server(), "everything__read_resource", { uri: "demo://none" })).toMatch(/^false /);
  });
});

describe("when a server stops", () => {
  it("[AGT-TOOL-03] the call fails, and the next one reconnects", async () => {
    const own = await startHttpServer();
    const server = await connectMcpServer({
      name: "everything",
      url: own.url,
      allow: ["loopback"],
      timeLimit: 5_000,
    });
    expect(await call(server, "everything__echo", { message: "one" })).toBe("true Echo: one");
    await own.stop();
    expect(await call(server, "everything__echo", { message: "two" })).toMatch(
      /^false MCP server 'everything' is not available/,
    );
    const again = await startHttpServer(Number(new URL(own.url).port));
    // The new process does not have the old session: the first call may fail, later ones succeed.
    await call(server, "everything__echo", { message: "three" });
    expect(await call(server, "everything__echo", { message: "four" })).toBe("true Echo: four");
    await server.close();
    await again.stop();
  });

  it("a missing program is reported immediately", async () => {
    await expect(connectMcpServer({ name: "none", command: "/no/such/program" })).rejects.toMatchObject({
      code: "mcp_server_unavailable",
      message: expect.stringContaining("ENOENT"),
    });
  });

  it("the error of a program that fails has its last output", async () => {
    const args = ["-e", "console.error('I lost my keys'); process.exit(3)"];
    await expect(connectMcpServer({ name: "poor", command: process.execPath, args })).rejects.toThrow(
      "I lost my keys",
    );
  });

  it("[AGT-TOOL-04] a call is aborted after its time limit", async () => {
    const server = await connectMcpServer({
      name: "slow",
      url: http.url,
      allow: ["loopback"],
      timeLimit: 1_500,
    });
    const result = await call(server, "slow__trigger-long-running-operation", { duration: 60, steps: 2 });
    expect(result).toMatch(/^false (outcome unknown|MCP server 'slow')/);
    await server.close();
  });
});

describe("the mcp_* actions", () => {
  const run = async (
    name: keyof ReturnType<typeof mcpActions>,
    args: Record<string, unknown>,
    allow = ["loopback"],
  ) => {
    const action = mcpActions({ allow })[name];
    const checked = await action.check({ server_url: http.url, ...args });
    if (!checked.ok) throw new Error(checked.message);
    return String(await action.run(checked.value, actionContext()));
  };

  it("[AGT-TOOL-05] reach any server by its URL", async () => {
    expect(await run("mcp_ping", {})).toBe("pong");
    expect(await run("mcp_list_tools", {})).toContain('"name":"get-sum"');
    expect(await run("mcp_list_prompts", {})).toContain('"name":"args-prompt"');
    expect(await run("mcp_list_resources", {})).toContain('"uri":"demo://resource/static');
    const sum = { tool_name: "get-sum", tool_input: { a: 1, b: 2 } };
    expect(await run("mcp_call_tool", sum)).toBe("The sum of 1 and 2 is 3.");
    expect(await run("mcp_get_prompt", { prompt_name: "simple-prompt" })).toContain("user: ");
    const uri = { resource_uri: "demo://resource/static/document/features.md" };
    expect(await run("mcp_read_resource", uri)).toContain("#");
    await expect(run("mcp_call_tool", { ...sum, tool_name: "none" })).rejects.toThrow(/none/);
  });

  it("obey the outbound guard", async () => {
    await expect(run("mcp_ping", {}, [])).rejects.toThrow(
      /not available: .*(blocked|not for us|loopback|allow)/i,
    );
  });
});

describe("swarm files", () => {
  const file = (server: object, actions: string[]) =>
    JSON.stringify([
      {
        name: "tools",
        version: "1.0.0",
        entrypoint: "caller",
        mcp_servers: { everything: server },
        agents: [
          {
            name: "caller",
            factory: "mail:scripted",
            comm_targets: [],
            enable_entrypoint: true,
            can_complete_tasks: true,
            actions,
            agent_params: {
              rules: [
                { when: { result: "everything__echo" }, do: [{ task_complete: "{{result}}" }] },
                { do: [{ act: { name: "everything__echo", args: { message: "{{body}}" } } }] },
              ],
            },
          },
        ],
      },
    ]);

  it("declare servers, and agents list their tools by name or with a wildcard", async () => {
    const [loaded] = await loadSwarmsFromText(file({ url: http.url }, ["everything__*"]), {
      outbound: { allow: ["loopback"] },
    });
    if (loaded === undefined) throw new Error("nothing was loaded");
    expect(loaded.definition.agents[0]?.actions).toContain("everything__get-sum");
    const mailroom = await Mailroom.open({ swarm: loaded.definition, data: false });
    expect(await mailroom.user("ann").ask("hi")).toMatchObject({ response: "Echo: hi" });
    await mailroom.close();
    await expect(
      loaded.definition.actions[0]?.run({ message: "late" }, actionContext()),
    ).rejects.toMatchObject({
      code: "mcp_server_closed",
    });
  });

  it("report unreachable servers and unset variables, and start no programs when that is disabled", async () => {
    const load = (server: object, options = {}) =>
      loadSwarmsFromText(file(server, ["everything__*"]), {
        builtins: defaultBuiltins(),
        env: {},
        ...options,
      });
    await expect(load({ url: http.url })).rejects.toThrow(
      /mcp_servers\.everything: MCP server .* is not available/,
    );
    await expect(load({ url: http.url, headers: { authorization: `Bearer $\{NOT_SET}` } })).rejects.toThrow(
      /NOT_SET/,
    );
    await expect(load(STDIO, { modules: false })).rejects.toThrow(/must not be started/);
    const secret = { url: http.url, headers: { "x-key": `$\{SECRET}` } };
    await expect(load(secret, { modules: false, env: { SECRET: "s3cret" } })).rejects.toThrow(
      /mcp_servers\.everything: the header 'x-key' cannot use .*SECRET/,
    );
    const [optional] = await loadSwarmsFromText(
      file({ url: http.url, required: false }, ["everything__*"]).replace(
        /"rules":.*?\]\}\]/,
        '"rules":[{"do":[{"task_complete":"alone"}]}]',
      ),
    );
    expect(optional?.warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining("is not available"),
    ]);
  });
});

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Story } from "../../test/swarms/turn.js";
import type { SwarmDefinition } from "../engine/definition.js";
import { loadSwarm, loadSwarms, loadSwarmsFromText } from "../library/swarms.js";
import { type SwarmFileProblem, swarmProblemsOf } from "../mail/swarm-file/problems.js";
import type { LoadOptions } from "./load.js";

type Json = Record<string, unknown>;

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mailroom-load-"));
  await writeFile(
    join(directory, "code.mjs"),
    `export const factory = (context) => (mail) => mail.complete(JSON.stringify({ name: context.name, params: context.params,
       tools: context.tools.map((tool) => tool.name), excludeTools: context.excludeTools }));
     export const agent = { greeting: "hello", run(mail) { mail.complete(this.greeting); } };
     export const add = ({ a, b }) => a + b;
     export const number = 5;
     export const pay = { name: "x", description: "x", parameters: { type: "object" }, idempotent: false,
       check: ({ euros }) => euros > 500 ? { ok: false, message: "too much" } : { ok: true, value: { cents: euros * 100 } },
       run: ({ cents }) => cents, parallel: false, approval: ({ cents }) => cents > 1000, approvalTimeout: 5 };
     export default () => (mail) => mail.complete("default");`,
  );
  await writeFile(
    join(directory, "typed.mts"),
    `import type { Mail } from "nowhere";
     export const agent = { run(mail: Mail): void { mail.complete("typed"); } };`,
  );
  await writeFile(join(directory, "broken.mjs"), "throw new Error('boom at import')");
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function solo(changes: Json = {}, swarm: Json = {}): Json {
  const agent = {
    name: "me",
    comm_targets: [],
    enable_entrypoint: true,
    can_complete_tasks: true,
    ...changes,
  };
  return { name: "solo", version: "1.0.0", entrypoint: "me", agents: [agent], ...swarm };
}

function load(swarm: Json, options: LoadOptions = {}) {
  return loadSwarmsFromText(JSON.stringify([swarm]), { ...options, directory });
}

async function problemsOf(work: Promise<unknown>): Promise<readonly SwarmFileProblem[]> {
  try {
    await work;
  } catch (error) {
    const problems = swarmProblemsOf(error);
    if (problems !== undefined) return problems;
    throw error;
  }
  return [];
}

/** Returns the answer of the swarm's agent to a user's request. */
async function say(definition: SwarmDefinition | undefined): Promise<unknown> {
  const mind = definition?.agents[0]?.implementation;
  if (mind?.kind !== "local") throw new Error("the swarm has no local agent");
  const { calls } = await mind.run(new Story().gets({ from: "ann", fromType: "user" }).turn());
  return calls[0]?.args.finish_message;
}

describe("module references", () => {
  it("to a factory receive the agent's context", async () => {
    const [loaded] = await load(
      solo(
        {
          factory: "module:./code.mjs#factory",
          agent_params: { a: 1 },
          actions: ["add"],
          exclude_tools: ["help"],
        },
        {
          actions: [
            {
              name: "add",
              description: "Adds.",
              parameters: { type: "object" },
              function: "module:./code.mjs#add",
            },
          ],
          exclude_tools: ["help", "send_broadcast"],
        },
      ),
    );
    expect(JSON.parse(String(await say(loaded?.definition)))).toEqual({
      name: "me",
      params: { a: 1 },
      tools: ["add"],
      excludeTools: ["help", "send_broadcast"],
    });
    const add = loaded?.definition.actions[0];
    expect(add?.run({ a: 2, b: 3 }, Object({}))).toBe(5);
  });

  it("to an action keep its own check, and still ask a person before it runs", async () => {
    const entry = {
      name: "pay",
      description: "Pays.",
      parameters: { type: "object", properties: { euros: { type: "number" } } },
      function: "module:./code.mjs#pay",
    };
    const [loaded] = await load(solo({ factory: "module:./code.mjs#agent" }, { actions: [entry] }));
    const pay = loaded?.definition.actions[0];
    expect(pay).toMatchObject({ name: "pay", description: "Pays.", parallel: false, approvalTimeout: 5 });
    expect(await pay?.check({ euros: "5" })).toMatchObject({ ok: false });
    expect(await pay?.check({ euros: 501 })).toEqual({ ok: false, message: "too much" });
    expect(await pay?.check({ euros: 5 })).toEqual({ ok: true, value: { cents: 500 } });
    const asks = pay?.approval;
    if (typeof asks !== "function") throw new Error("there is no predicate");
    expect([asks({ cents: 500 }, Object({})), asks({ cents: 5000 }, Object({}))]).toEqual([false, true]);
    expect(pay?.run({ cents: 500 }, Object({}))).toBe(500);
  });

  it.each([
    ["an agent object", "module:./code.mjs#agent", "hello"],
    ["the default export", "module:./code.mjs", "default"],
    ["TypeScript", "module:./typed.mts#agent", "typed"],
  ])("may name %s", async (_, factory, words) => {
    const [loaded] = await load(solo({ factory }));
    expect(await say(loaded?.definition)).toBe(words);
  });

  it.each([
    ["module:./code.mjs#factry", /no export 'factry'/, /did you mean 'factory'/],
    ["module:./cod.mjs#factory", /no file /, /relative to the swarm file/],
    ["module:./typed.mjs#agent", /no file /, /typed\.mts/],
    ["module:./broken.mjs#agent", /boom at import/, undefined],
    ["module:./code.mjs#number", /neither a factory nor an agent/, /\{ run\(mail\)/],
    ["module:no-such-package#x", /package .no-such-package. not found/, /install it/],
    ["./code.mjs#factory", /is not a reference/, /did you mean 'module:\.\/code\.mjs#factory'/],
    ["module:#x", /incomplete/, undefined],
  ])("%s is reported with a hint", async (factory, message, hint) => {
    const [problem, ...rest] = await problemsOf(load(solo({ factory })));
    expect(rest).toEqual([]);
    expect(problem).toMatchObject({ path: "swarms[0].agents[0].factory", line: 1 });
    expect(problem?.message).toMatch(message);
    if (hint !== undefined) expect(problem?.hint).toMatch(hint);
  });

  it("can be disabled", async () => {
    const problems = await problemsOf(load(solo({ factory: "module:./code.mjs#agent" }), { modules: false }));
    expect(problems).toMatchObject([{ message: expect.stringContaining("cannot be loaded") }]);
  });
});

describe("built-in agents", () => {
  it("follow their script", async () => {
    const rules = [{ do: [{ task_complete: "by the book" }] }];
    for (const factory of ["mail:scripted", "mail:agent", "mail:supervisor"]) {
      const [loaded] = await load(solo({ factory, agent_params: { rules } }));
      expect(await say(loaded?.definition)).toBe("by the book");
    }
  });

  it("report problems of their script with positions", async () => {
    const rules = [{ do: [{ task_complet: "x" }] }];
    const text = JSON.stringify([solo({ factory: "mail:scripted", agent_params: { rules } })], null, 1);
    const [problem] = await problemsOf(loadSwarmsFromText(text));
    expect(problem).toMatchObject({
      path: "swarms[0].agents[0].agent_params.rules[0].do[0].task_complet",
      hint: "did you mean 'task_complete'?",
    });
    expect(text.split("\n")[(problem?.line ?? 0) - 1]).toContain("task_complet");
  });

  it("report a missing model or key", async () => {
    const problems = await problemsOf(load(solo({ factory: "mail:agent", agent_params: { llm: "x/y" } })));
    expect(problems).toMatchObject(
      [{ path: "swarms[0].agents[0].agent_params.llm", message: /unknown provider 'x'/ }].map(anyMessage),
    );
    const builtins = { agents: {}, actions: {} };
    const none = await problemsOf(load(solo({ factory: "mail:agent", agent_params: {} }), { builtins }));
    expect(none).toMatchObject(
      [{ path: "swarms[0].agents[0].factory", message: /requires a model/ }].map(anyMessage),
    );
  });

  it("are suggested by name", async () => {
    const problems = await problemsOf(load(solo({ factory: "mail:scriptd" })));
    expect(problems).toMatchObject([{ hint: "did you mean 'scripted'?" }]);
  });

  it("can be added by the caller", async () => {
    const builtins = { agents: { agent: () => () => "from a model" }, actions: {} };
    const [loaded] = await load(solo({ factory: "mail:agent", agent_params: { llm: "x/y" } }), { builtins });
    expect(loaded?.definition.agents).toHaveLength(1);
  });
});

function anyMessage({ message, ...rest }: { message: RegExp; path: string }) {
  return { ...rest, message: expect.stringMatching(message) };
}

describe("files of the reference implementation", () => {
  const python = (path: string) => `python::mail.${path}`;
  const file = [
    {
      name: "example",
      version: "1.1.0",
      entrypoint: "supervisor",
      agents: [
        {
          name: "supervisor",
          factory: python("factories.supervisor:LiteLLMSupervisorFunction"),
          comm_targets: ["weather", "math"],
          enable_entrypoint: true,
          can_complete_tasks: true,
          agent_params: { llm: "some/model", system: python("examples.supervisor.prompts:SYSPROMPT") },
        },
        {
          name: "weather",
          factory: python("examples.weather_dummy.agent:LiteLLMWeatherFunction"),
          comm_targets: ["supervisor", "math"],
          actions: ["get_weather_forecast"],
          agent_params: { llm: "some/model", system: python("examples.weather_dummy.prompts:SYSPROMPT") },
        },
        {
          name: "math",
          factory: "mail.examples.math_dummy.agent:factory_math_dummy",
          comm_targets: ["supervisor", "weather"],
          actions: ["calculate_expression"],
          agent_params: {},
        },
      ],
      actions: [
        {
          name: "get_weather_forecast",
          description: "Forecast",
          parameters: { type: "object", properties: { location: { type: "string" } } },
          function: python("examples.weather_dummy.actions:get_weather_forecast"),
        },
      ],
      action_imports: [python("examples.math_dummy.actions:calculate_expression")],
    },
  ];

  it("load, with a warning for settings without effect", async () => {
    const [loaded] = await loadSwarmsFromText(JSON.stringify(file));
    expect(loaded?.definition.agents.map(({ implementation }) => implementation.kind)).toEqual([
      "local",
      "local",
      "local",
    ]);
    expect(loaded?.definition.actions.map(({ name }) => name)).toEqual([
      "get_weather_forecast",
      "calculate_expression",
    ]);
    expect(loaded?.warnings.map(({ path }) => path)).toContain("swarms[0].agents[1].agent_params.llm");
  });

  it("check arguments against the file's schema and the action's own", async () => {
    const [loaded] = await loadSwarmsFromText(JSON.stringify(file));
    const forecast = loaded?.definition.actions[0];
    expect(await forecast?.check({ location: 5 })).toMatchObject({ ok: false });
    expect(await forecast?.check({ days_ahead: 1 })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^location: /),
    });
    expect(await forecast?.run({ location: "Kyoto", days_ahead: 1 }, Object({}))).toMatch(
      /^Kyoto on .*simulated/,
    );
  });

  it("with other Python code are rejected with a hint", async () => {
    const problems = await problemsOf(load(solo({ factory: "python::my.agents:Clever" })));
    expect(problems).toMatchObject([
      {
        message: expect.stringContaining("cannot run here"),
        hint: expect.stringContaining("module:./file.js#export"),
      },
    ]);
    const prompt = solo({
      factory: "module:./code.mjs#factory",
      agent_params: { deep: ["python::my.prompts:X"] },
    });
    expect(await problemsOf(load(prompt))).toMatchObject([
      { path: "swarms[0].agents[0].agent_params.deep[0]" },
    ]);
  });
});

describe("url references", () => {
  let url: string;
  let host: string;
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://x").pathname;
    if (path === "/prompt.json") response.end('{ "be": "kind" }');
    else if (path === "/moved") response.writeHead(302, { location: "/prompt.json" }).end();
    else if (path === "/text") response.end("be kind");
    else if (path === "/large") response.end(JSON.stringify("x".repeat(5000)));
    else if (path !== "/silent") response.writeHead(404).end();
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("it does not listen on a port");
    host = `127.0.0.1:${address.port}`;
    url = `url::http://${host}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const withSystem = (system: string): Json =>
    solo({ factory: "module:./code.mjs#factory", agent_params: { system } });

  it("become the text of the document", async () => {
    const [loaded] = await load(withSystem(`${url}/prompt.json`), { urls: { allowedHosts: [host] } });
    expect(JSON.parse(String(await say(loaded?.definition)))).toMatchObject({
      params: { system: '{"be":"kind"}' },
    });
  });

  it("are fetched only from allowed hosts", async () => {
    const problems = await problemsOf(load(withSystem(`${url}/prompt.json?token=secret`)));
    expect(problems).toMatchObject([
      {
        path: "swarms[0].agents[0].agent_params.system",
        hint: expect.stringContaining(`allowedHosts: ["${host}"]`),
      },
    ]);
    expect(JSON.stringify(problems)).not.toContain("secret");
  });

  it.each([
    ["/moved", /status 302/],
    ["/missing", /status 404/],
    ["/text", /did not return JSON/],
    ["/large", /larger than 1000 bytes/],
    ["/silent", /no answer within 200 ms/],
  ])("%s is an error", async (path, message) => {
    const urls = { allowedHosts: [host], sizeLimit: 1000, timeLimit: 200 };
    const problems = await problemsOf(load(withSystem(`${url}${path}`), { urls }));
    expect(problems).toMatchObject([{ message: expect.stringMatching(message) }]);
  });

  it("must be http and contain no password", async () => {
    expect(await problemsOf(load(withSystem("url::file:///etc/passwd")))).toHaveLength(1);
    expect(await problemsOf(load(withSystem("url::https://a:b@example.org/")))).toHaveLength(1);
  });
});

describe("loading a file", () => {
  it("returns its swarms, one of them, or all problems", async () => {
    const agent = { factory: "module:./code.mjs#agent" };
    const file = join(directory, "swarms.json");
    await writeFile(
      file,
      JSON.stringify([solo(agent, { name: "one" }), solo({ factory: "mail:nothing" }, { name: "two" })]),
    );
    expect((await loadSwarm(file, "one")).definition.name).toBe("one");
    expect(await problemsOf(loadSwarm(file))).toMatchObject([{ hint: "name one: 'one', 'two'" }]);
    expect(await problemsOf(loadSwarm(file, "on"))).toMatchObject([{ hint: "did you mean 'one'?" }]);
    expect(await problemsOf(loadSwarms(file))).toMatchObject([{ path: "swarms[1].agents[0].factory" }]);
    expect(await problemsOf(loadSwarms(join(directory, "none.json")))).toMatchObject([
      { message: expect.stringContaining("cannot be read") },
    ]);
  });

  it("reports problems of references and of the swarm together, in the order of the file", async () => {
    const text = JSON.stringify(
      [
        solo(
          { factory: "mail:nothing", actions: ["fly"] },
          { entrypoint: "you", action_imports: ["mail:nothing"] },
        ),
      ],
      null,
      1,
    );
    const problems = await problemsOf(loadSwarmsFromText(text));
    expect(problems.map(({ path }) => path)).toEqual([
      "swarms[0].entrypoint",
      "swarms[0].agents[0].factory",
      "swarms[0].action_imports[0]",
    ]);
  });

  it("includes factory and parameters in the hash", async () => {
    const hashOf = async (params: Json) =>
      (await load(solo({ factory: "module:./code.mjs#factory", agent_params: params })))[0]?.definition.hash;
    expect(await hashOf({ a: 1, b: 2 })).toBe(await hashOf({ b: 2, a: 1 }));
    expect(await hashOf({ a: 1 })).not.toBe(await hashOf({ a: 2 }));
  });

  it("resolves imported actions", async () => {
    const swarm = solo(
      { factory: "module:./code.mjs#agent", actions: ["calculate", "fly"] },
      { action_imports: ["mail:example/calculate"] },
    );
    expect(await problemsOf(load(swarm))).toMatchObject([{ path: "swarms[0].agents[0].actions[1]" }]);
  });
});

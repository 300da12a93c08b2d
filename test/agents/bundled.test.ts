/** The bundled example agents: with a model if one is configured, and by their scripts otherwise. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { defaultBuiltins, loadSwarmsFromText, Mailroom } from "../../src/library/index.js";
import { served } from "../kit/served.js";
import { type Model, ModelServer } from "./kit/model-server.js";
import { reply } from "./kit/swarm.js";

/** The example program of the protocol's documentation, as a swarm file. */
const EXAMPLE = [
  {
    name: "demo-swarm",
    version: "1.0.0",
    entrypoint: "supervisor",
    action_imports: ["mail:example/get_weather_forecast"],
    agents: [
      {
        name: "supervisor",
        factory: "mail:example/supervisor",
        comm_targets: ["weather"],
        enable_entrypoint: true,
        can_complete_tasks: true,
      },
      {
        name: "weather",
        factory: "mail:example/weather",
        comm_targets: ["supervisor"],
        actions: ["get_weather_forecast"],
      },
    ],
  },
];

const QUESTION = "What's the outlook for tomorrow in New York?";

it("[MAIL-G-10] the example of the documentation gets a forecast, over HTTP and without a model", async () => {
  await using server = await served(JSON.stringify(EXAMPLE));
  const client = new MailClient(server.url, { token: "user:demo-user" });
  const answer = await client.postMessage(QUESTION, { subject: "Forecast check", showEvents: true });
  expect(answer.status).toBe("completed");
  expect(answer.response).toMatch(/forecast for New York/i);
  expect(answer.events?.map(({ event }) => event)).toContain("action_complete");
});

describe("with a model", () => {
  let models: ModelServer;
  let mailroom: Mailroom | undefined;

  const thinking: Model = ({ agent, said, newest }) => {
    const results = said.at(-1)?.results ?? [];
    if (agent === "weather") {
      if (results.some(({ content }) => content.includes("New York")))
        return reply.respond("supervisor", "Mild.");
      return { calls: [{ name: "get_weather_forecast", args: { location: "New York", date: "tomorrow" } }] };
    }
    if (agent !== "supervisor") return reply.respond("supervisor", `The ${agent} thinks.`);
    const answer = /<from type="agent">\w+<\/from>[\s\S]*<body>(.*)<\/body>/.exec(newest)?.[1];
    return answer === undefined
      ? reply.ask(/ask (\w+)/.exec(newest)?.[1] ?? "weather", "Please.")
      : reply.finish(`It says: ${answer}`);
  };

  beforeEach(async () => {
    models = await ModelServer.start(thinking);
  });
  afterEach(async () => {
    await mailroom?.close({ grace: 0 });
    mailroom = undefined;
    await models.close();
    expect(models.complaints).toEqual([]);
  });

  async function open(swarms: unknown, options: Parameters<typeof defaultBuiltins>[0]): Promise<string[]> {
    const [loaded] = await loadSwarmsFromText(JSON.stringify(swarms), { builtins: defaultBuiltins(options) });
    if (loaded === undefined) throw new Error("there is no swarm");
    mailroom = await Mailroom.open({ swarm: loaded.definition, data: false });
    return loaded.warnings.map(({ message }) => message);
  }

  it("[MAIL-G-11] all of them use the model of the configuration, with prompts of their own", async () => {
    expect(await open(EXAMPLE, { models: { env: models.env }, defaultModel: "openai/gpt-test" })).toEqual([]);
    const answer = await mailroom?.user("ann").ask(QUESTION);
    expect(answer).toMatchObject({ status: "completed", response: "It says: Mild." });
    expect(new Set(models.requests.map(({ agent }) => agent))).toEqual(new Set(["supervisor", "weather"]));
    expect(models.requests[0]?.system).toContain("You lead a swarm of specialists.");
  });

  it.each(["weather", "math", "consultant", "analyst"])(
    "[MAIL-G-11] %s uses the model that a file of the reference names",
    async (name) => {
      const actions: Record<string, string> = {
        weather: "get_weather_forecast",
        math: "calculate_expression",
      };
      const own = actions[name] === undefined ? [] : [actions[name]];
      const params = { llm: "openai/gpt-test", use_proxy: false };
      const swarm = {
        name: "example",
        version: "1.0.0",
        entrypoint: "supervisor",
        action_imports: own.map((action) => `mail:example/${action}`),
        agents: [
          {
            name: "supervisor",
            factory: "python::mail.factories.supervisor:LiteLLMSupervisorFunction",
            comm_targets: [name],
            enable_entrypoint: true,
            can_complete_tasks: true,
            agent_params: { ...params, system: "python::mail.examples.supervisor.prompts:SYSPROMPT" },
          },
          {
            name,
            factory: `python::mail.examples.${name}_dummy.agent:factory_${name}_dummy`,
            comm_targets: ["supervisor"],
            actions: own,
            agent_params: { ...params, system: `python::mail.examples.${name}_dummy.prompts:SYSPROMPT` },
          },
        ],
      };
      expect(await open([swarm], { models: { env: models.env } })).toEqual([]);
      const answer = await mailroom?.user("ann").ask(`ask ${name} about New York`);
      expect(answer?.response).toBe(name === "weather" ? "It says: Mild." : `It says: The ${name} thinks.`);
    },
  );

  it("[MAIL-G-11] without its key they follow their scripts, and the loader says so", async () => {
    const warnings = await open(EXAMPLE, { models: { env: {} }, defaultModel: "openai/gpt-test" });
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain("follows its script, because the model 'openai/gpt-test' is not available");
    const answer = await mailroom?.user("ann").ask(QUESTION);
    expect(answer?.response).toMatch(/forecast for New York/i);
    expect(models.requests).toEqual([]);
  });
});

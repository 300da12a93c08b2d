/** Faults that were found in model agents, each through the providers' wire formats. */
import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ModelEnvironment } from "../../src/agents/index.js";
import { deltaChannel } from "../../src/engine/runtime/follow.js";
import {
  type AskOptions,
  defineAction,
  defineAgent,
  defineSwarm,
  httpActions,
  loadSwarmsFromText,
  Mailroom,
  type MailroomOptions,
  type ModelAgentOptions,
  modelAgent,
} from "../../src/index.js";
import { defaultBuiltins } from "../../src/library/index.js";
import { type Behaviour, ModelServer } from "./kit/model-server.js";
import { type StrictModel, StrictProviders, type StrictRequest, URL_OF } from "./kit/strict.js";
import { reply } from "./kit/swarm.js";

const OPUS = { llm: "anthropic/claude-opus-5-5" } as const;
const CHAT = { llm: "openai/gpt-5", toolFormat: "completions" } as const;

async function closed(mailroom: Mailroom): Promise<void> {
  await mailroom.close({ grace: 0 });
}

interface Desk {
  readonly mailroom: Mailroom;
  readonly providers: StrictProviders;
}

interface DeskOptions extends Partial<MailroomOptions> {
  readonly environment?: ModelEnvironment;
  /** Characters of a result of `look`. */
  readonly size?: number;
}

/** One agent with a model, one that answers by itself, and an action. */
async function openDesk(
  model: StrictModel,
  options: Omit<ModelAgentOptions, "system">,
  { environment = {}, size = 10, ...more }: DeskOptions = {},
): Promise<Desk> {
  const providers = new StrictProviders(model);
  const look = defineAction({
    name: "look",
    description: "Looks",
    parameters: { type: "object", properties: { q: { type: "string" } } },
    run: ({ q }) => `saw ${String(q)} ${"x".repeat(size)}`,
  });
  const run = modelAgent(
    { ...options, system: "You are the desk." },
    { ...providers.environment, ...environment },
  );
  const swarm = defineSwarm({
    name: "desk",
    agents: [
      defineAgent({
        name: "desk",
        enableEntrypoint: true,
        canCompleteTasks: true,
        commTargets: ["clerk"],
        actions: [look],
        run,
      }),
      defineAgent({ name: "clerk", commTargets: ["desk"], run: (mail) => mail.reply("x") }),
    ],
  });
  const mailroom = await Mailroom.open({ swarm, data: false, onProblem: () => {}, ...more });
  onTestFinished(() => closed(mailroom));
  return { mailroom, providers };
}

async function ask(desk: Desk, options: AskOptions = {}) {
  const answer = await desk.mailroom.user("ann").ask("go", { taskId: "t", ...options });
  return { ...answer, refused: desk.providers.refused };
}

const thinking = (behaviour: Behaviour): Behaviour => ({ reasoning: "hm", ...behaviour });
const look = (q: string): Behaviour => ({ calls: [{ name: "look", args: { q } }] });
const isSummary = (request: StrictRequest) => request.tools.length === 0;

describe("thinking that is bound to what came before it", () => {
  const models: Readonly<Record<string, [StrictModel, AskOptions?, DeskOptions?, number?]>> = {
    "after text without a call": [
      (_, n) => thinking(n === 1 ? { text: "Hello" } : n === 2 ? look("a") : reply.finish("ok")),
    ],
    "after a malformed call": [
      (_, n) =>
        thinking(
          n === 1 ? { calls: [{ name: "look", raw: '{"q": "a' }] } : n === 2 ? look("a") : reply.finish("ok"),
        ),
    ],
    "after a compaction": [
      (request, n) =>
        isSummary(request) ? { text: "SUMMARY" } : thinking(n < 14 ? look(`${n}`) : reply.finish("ok")),
      {},
      { size: 2_500 },
      6_000,
    ],
    "at the step limit": [
      (request, n) =>
        JSON.stringify(request.body).includes("maximum_steps_reached")
          ? thinking(reply.finish("ok"))
          : thinking(reply.ask("clerk", `${n}`)),
      { maxSteps: 4 },
    ],
  };
  it.each(Object.entries(models))(
    "[AGENTS-T-2] is accepted %s",
    async (_name, [model, options, more, window]) => {
      const desk = await openDesk(
        model,
        { ...OPUS, streamTokens: true, ...(window !== undefined && { contextWindow: window }) },
        more,
      );
      expect(await ask(desk, options)).toMatchObject({ status: "completed", response: "ok", refused: [] });
      const later = await ask(desk);
      expect(later).toMatchObject({ refused: [] });
    },
  );

  it("[AGENTS-T-2] is sent back unchanged while nothing changes", async () => {
    const desk = await openDesk((_, n) => thinking(n < 4 ? look(`${n}`) : reply.finish("ok")), OPUS);
    await ask(desk);
    expect(desk.providers.requests.at(-1)?.said.flatMap(({ reasoning }) => reasoning)).toHaveLength(3);
  });

  it("[AGENTS-T-2] is left out for good when the provider rejects it for another reason", async () => {
    const desk = await openDesk(({ said, body }, n) => {
      const isOld = said.some(({ reasoning }) => reasoning.includes("signed:hm 1"));
      if (n > 1 && isOld) return { status: 400, message: "Invalid `signature` in `thinking` block" };
      expect(body.model).toBe("claude-opus-5-5");
      return thinking(n < 6 ? look(`${n}`) : reply.finish("ok"));
    }, OPUS);
    expect(await ask(desk)).toMatchObject({ status: "completed", response: "ok" });
    const rejected = desk.providers.requests.filter(({ said }) =>
      said.some(({ reasoning }) => reasoning.includes("signed:hm 1")),
    );
    expect(rejected).toHaveLength(1);
  });
});

describe("a history that is too long", () => {
  it("[AGENTS-T-3] loses neither the page that was just fetched nor the request", async () => {
    const web = createServer((request, response) => {
      response.end(`PAGE${request.url?.slice(1)} ${"word ".repeat(60_000)}`);
    });
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void web.close());
    const address = web.address();
    const port = typeof address === "object" ? address?.port : 0;
    const seen: string[] = [];
    const providers = new StrictProviders((request) => {
      if (isSummary(request)) return { text: "Pages were read." };
      const shown = JSON.stringify(request.body);
      expect(shown).toContain("Compare the pages");
      seen.push(/.*(PAGE\d)/.exec(shown)?.[1] ?? "none");
      const url = `http://127.0.0.1:${port}/${seen.length}`;
      return seen.length <= 3 ? { calls: [{ name: "http_get", args: { url } }] } : reply.finish("end");
    });
    const { http_get } = httpActions({ allow: ["loopback"] });
    const run = modelAgent(CHAT, providers.environment);
    const agents = [
      defineAgent({ name: "desk", enableEntrypoint: true, canCompleteTasks: true, actions: [http_get], run }),
    ];
    const mailroom = await Mailroom.open({ swarm: defineSwarm({ name: "desk", agents }), data: false });
    onTestFinished(() => closed(mailroom));
    expect(await mailroom.user("ann").ask("Compare the pages 1, 2 and 3")).toMatchObject({ response: "end" });
    expect(seen).toEqual(["none", "PAGE1", "PAGE2", "PAGE3"]);
  });

  it.each([8_000, 32_000, 128_000])(
    "[AGENTS-T-3] shows a result larger than a window of %i tokens in part",
    async (contextWindow) => {
      const desk = await openDesk(
        (request) =>
          isSummary(request)
            ? { text: "S" }
            : JSON.stringify(request.body).includes("saw page")
              ? reply.finish("saw it")
              : look("page"),
        { ...CHAT, contextWindow },
        { size: contextWindow * 6 },
      );
      expect(await ask(desk)).toMatchObject({ response: "saw it" });
      expect(desk.providers.count).toBe(2);
    },
  );
});

describe("effort", () => {
  it.each([
    ["claude-sonnet-4-5", { thinking: { type: "enabled", budget_tokens: 4_000 } }],
    ["claude-opus-4-7", { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
    ["claude-opus-4-8", { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
    ["claude-opus-5", { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
    [
      "claude-opus-5-5",
      { thinking: { type: "adaptive" }, output_config: { effort: "low" }, max_tokens: 64_000 },
    ],
    [
      "claude-fable-5-1",
      { thinking: { type: "adaptive" }, output_config: { effort: "low" }, max_tokens: 64_000 },
    ],
    ["claude-of-tomorrow", { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
  ])("[AGENTS-T-5] is requested from %s in the form that it accepts", async (model, body) => {
    const desk = await openDesk(() => reply.finish("ok"), {
      llm: `anthropic/${model}`,
      reasoningEffort: "low",
    });
    expect(await ask(desk)).toMatchObject({ status: "completed", refused: [] });
    expect(desk.providers.requests[0]?.body).toMatchObject(body);
  });

  it("[AGENTS-T-5] is distinguished by models that think by level", async () => {
    const desk = await openDesk(() => reply.finish("ok"), { ...OPUS, reasoningEffort: "xhigh" });
    await ask(desk);
    expect(desk.providers.requests[0]?.body).toMatchObject({ output_config: { effort: "xhigh" } });
    const google = await openDesk(() => reply.finish("ok"), {
      llm: "google/gemini-3-pro-preview",
      reasoningEffort: "minimal",
    });
    await ask(google);
    expect(google.providers.requests[0]?.body.generationConfig).toMatchObject({
      thinkingConfig: { thinkingLevel: "low" },
    });
  });
});

it.each([false, true])(
  "[AGENTS-T-6] reasoning of compatible servers is sent back (streamed: %s)",
  async (streamTokens) => {
    const desk = await openDesk((_, n) => thinking(n < 3 ? look(`${n}`) : reply.finish("ok")), {
      llm: "deepseek/deepseek-chat",
      baseUrl: URL_OF,
      streamTokens,
    });
    expect(await ask(desk)).toMatchObject({ status: "completed", refused: [] });
    expect(desk.providers.requests.at(-1)?.said.flatMap(({ reasoning }) => reasoning)).toEqual([
      "hm 1",
      "hm 2",
    ]);
  },
);

it("[AGENTS-T-8] nothing is said after the results of calls", async () => {
  const desk = await openDesk((_, n) => (n < 3 ? look(`${n}`) : reply.finish("ok")), CHAT);
  await ask(desk);
  expect(desk.providers.requests.map(({ said }) => said.at(-1)?.role)).toEqual(["user", "tool", "tool"]);
});

it.each(["openai/gpt-5", "anthropic/claude-sonnet-4-5", "google/gemini-3-pro-preview"])(
  "[AGENTS-T-9] %s accepts a history that begins with an ignored broadcast",
  async (llm) => {
    const providers = new StrictProviders(({ agent, said }) => {
      if (agent === "clerk") {
        const isNews = JSON.stringify(said.at(-1)).includes("lunch");
        return isNews
          ? { calls: [{ name: "ignore_broadcast", args: { reason: "busy" } }] }
          : reply.respond("head", "42");
      }
      if (said.length === 1) {
        return {
          calls: [{ name: "send_broadcast", args: { subject: "news", body: "lunch", targets: ["all"] } }],
        };
      }
      return JSON.stringify(said).includes("42") ? reply.finish("42") : reply.ask("clerk", "how many?");
    });
    const agents = (["head", "clerk"] as const).map((name) =>
      defineAgent({
        name,
        enableEntrypoint: name === "head",
        canCompleteTasks: name === "head",
        commTargets: [name === "head" ? "clerk" : "head"],
        run: modelAgent({ llm }, providers.environment),
      }),
    );
    const mailroom = await Mailroom.open({ swarm: defineSwarm({ name: "office", agents }), data: false });
    onTestFinished(() => closed(mailroom));
    expect(await mailroom.user("ann").ask("go")).toMatchObject({ response: "42" });
    expect(providers.refused).toEqual([]);
  },
);

it("[AGENTS-T-1] models that number their calls do not share idempotency keys", async () => {
  const keys: string[] = [];
  const order = defineAction({
    name: "order",
    description: "Orders",
    parameters: { type: "object" },
    run: (_args, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return "ordered";
    },
  });
  const providers = new StrictProviders(({ said }) =>
    said.filter(({ role }) => role === "tool").length < 2
      ? {
          calls: [
            { name: "order", id: "call_0" },
            { name: "order", id: "call_1" },
          ],
        }
      : reply.finish("ok"),
  );
  const run = modelAgent(CHAT, providers.environment);
  const agents = [
    defineAgent({ name: "desk", enableEntrypoint: true, canCompleteTasks: true, actions: [order], run }),
  ];
  const mailroom = await Mailroom.open({ swarm: defineSwarm({ name: "shop", agents }), data: false });
  onTestFinished(() => closed(mailroom));
  await Promise.all(["ann", "bob"].map((user) => mailroom.user(user).ask("Order!")));
  expect(keys).toHaveLength(8);
  expect(new Set(keys).size).toBe(8);
});

it("[AGENTS-T-11] a stream that is asked for again is marked", async () => {
  const pieces: unknown[] = [];
  const cut: Behaviour = { cutAfter: 3, reply: { text: "The answer is forty-", calls: [] } };
  const desk = await openDesk(
    (_, n) => (n === 1 ? cut : { text: "The answer is 42", ...reply.finish("ok") }),
    {
      ...CHAT,
      streamTokens: true,
    },
  );
  const { outcome, key } = await desk.mailroom.user("ann").post("go");
  desk.mailroom.bus.subscribe(deltaChannel(key), (note) => pieces.push(note));
  await outcome;
  expect(pieces).toMatchObject([
    { delta: expect.stringContaining("The") },
    { delta: expect.any(String) },
    { attempt: 2, offset: 0, reset: true, delta: "" },
    { attempt: 2, offset: 0, delta: "The answ" },
    { attempt: 2, offset: 8, delta: "er is 42" },
    { attempt: 2, offset: 0, delta: "ok", call: { name: "task_complete" } },
  ]);
});

it("[AGENTS-T-14] a model of a distrusted swarm cannot be an address in our network", async () => {
  const inside = await ModelServer.start(() => reply.finish("inside"));
  onTestFinished(() => inside.close());
  const agent = {
    name: "spy",
    factory: "mail:agent",
    comm_targets: [],
    enable_entrypoint: true,
    can_complete_tasks: true,
    agent_params: { llm: "vllm/m", base_url: inside.url, max_retries: 0 },
  };
  const file = JSON.stringify([{ name: "spies", version: "1", entrypoint: "spy", agents: [agent] }]);
  const asked = async (modules?: false) => {
    const [loaded] = await loadSwarmsFromText(file, {
      builtins: defaultBuiltins(),
      ...(modules !== undefined && { modules }),
    });
    if (loaded === undefined) throw new Error("nothing was loaded");
    const mailroom = await Mailroom.open({ swarm: loaded.definition, data: false, onProblem: () => {} });
    onTestFinished(() => closed(mailroom));
    return mailroom.user("ann").ask("go");
  };
  expect(await asked()).toMatchObject({ response: "inside" });
  expect(await asked(false)).toMatchObject({ status: "failed" });
  expect(inside.requests).toHaveLength(1);
});

it.each([CHAT, { llm: "openai/gpt-5" }, OPUS, { llm: "google/gemini-3-pro-preview" }])(
  "[AGENTS-T-15] a refusal reaches the user after one call ($llm $toolFormat)",
  async (options) => {
    const refusal = "I cannot help with that.";
    const isOpenai = options.llm.startsWith("openai");
    const desk = await openDesk(
      () => (isOpenai ? { text: refusal, finish: "content_filter" } : { refusal, finish: "content_filter" }),
      options,
    );
    expect(await ask(desk)).toMatchObject({ status: "completed", response: refusal });
    expect(desk.providers.count).toBe(1);
  },
);

it("[AGENTS-T-15] text that a model insists on is its answer to the user", async () => {
  const desk = await openDesk(() => ({ text: "Just text." }), CHAT);
  expect(await ask(desk)).toMatchObject({ status: "completed", response: "Just text." });
  expect(desk.providers.count).toBe(3);
});

it("[AGENTS-T-19] an answer that was cut off is not delivered", async () => {
  const cut = await openDesk(() => ({ text: "Once upon a", finish: "length" }), CHAT);
  expect(await ask(cut)).toMatchObject({ status: "failed", response: expect.stringContaining("max_tokens") });
  const once = await openDesk(
    (_, n) => (n === 1 ? { text: "Once upon a", finish: "length" } : reply.finish("short")),
    CHAT,
  );
  expect(await ask(once)).toMatchObject({ response: "short" });
});

describe("a provider's answer", () => {
  it.each(["application/json", "text/event-stream"])(
    "[AGENTS-T-20] has a limited size (%s)",
    async (type) => {
      let sent = 0;
      const endless: typeof fetch = async () =>
        new Response(
          new ReadableStream({
            pull(controller) {
              sent += 1 << 20;
              if (sent > 200 << 20) controller.close();
              else controller.enqueue(new Uint8Array(1 << 20).fill(32));
            },
          }),
          { headers: { "content-type": type } },
        );
      const streamTokens = type !== "application/json";
      const desk = await openDesk(() => ({}), { ...CHAT, streamTokens }, { environment: { fetch: endless } });
      expect(await ask(desk)).toMatchObject({ status: "failed" });
      expect(sent).toBeLessThan(64 << 20);
    },
  );

  it.each([400, 401, 404, 429, 500])(
    "[AGENTS-T-21] is not shown to users when it is an error (status %i)",
    async (status) => {
      const reported: string[] = [];
      const desk = await openDesk(
        () => ({ status, message: "bad key sk-openai of org-77" }),
        { ...CHAT, maxRetries: 0 },
        {
          environment: { report: ({ message }) => void reported.push(message) },
        },
      );
      const answer = await ask(desk);
      expect(answer).toMatchObject({
        status: "failed",
        response: expect.stringContaining(`status ${status}`),
      });
      expect(answer.response).not.toContain("org-77");
      // The operator reads it, without the key.
      expect(reported.join()).toContain("org-77");
      expect(reported.join()).not.toContain("sk-openai");
    },
  );
});

describe("limits of a provider", () => {
  it("[AGENTS-T-16] many tasks share a provider that serves few at once", async () => {
    let running = 0;
    let most = 0;
    const desk = await openDesk(async () => {
      if (running >= 10) return { status: 429, message: "slow down" };
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 2));
      running--;
      return reply.finish("ok");
    }, CHAT);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => desk.mailroom.user(`user${n}`).ask("go")),
    );
    expect(answers.filter(({ status }) => status !== "completed")).toEqual([]);
    expect(most).toBe(10);
  });

  it("[AGENTS-T-16] a used up quota is not tried again", async () => {
    const desk = await openDesk(() => ({ status: 429, message: "You exceeded your current quota" }), CHAT);
    expect(await ask(desk)).toMatchObject({ status: "failed", response: expect.stringContaining("quota") });
    expect(desk.providers.count).toBe(1);
  });
});

describe("several models", () => {
  const llm = ["openai/gpt-5", "anthropic/claude-opus-5-5"] as const;
  it.each([
    ["is overloaded", { status: 529, message: "overloaded" }],
    ["has no quota", { status: 429, message: "insufficient_quota" }],
    ["refuses", { text: "no", finish: "content_filter" as const }],
    ["filters everything", { finish: "content_filter" as const }],
  ])("the next one answers when one %s, and events show it", async (_name, behaviour) => {
    const desk = await openDesk(
      (request) => (request.wire === "chat" ? behaviour : reply.finish("from the second")),
      {
        llm,
        toolFormat: "completions",
      },
    );
    expect(await ask(desk)).toMatchObject({ status: "completed", response: "from the second", refused: [] });
    const task = await desk.mailroom.user("ann").requireTask("t");
    const events = [];
    for await (const event of task.events()) events.push(event);
    expect(events.filter(({ event }) => event === "model_call_failed")[0]).toMatchObject({
      data: { extra_data: { agent: "desk", model: "openai/gpt-5" } },
    });
    const turns = [];
    for await (const { entry } of task.journal()) if (entry.t === "turn") turns.push(entry);
    expect(turns[0]?.usage).toMatchObject({
      model: "anthropic/claude-opus-5-5",
      inputTokens: expect.any(Number),
    });
  });

  it("a request that the provider rejects is not sent to the next model", async () => {
    const desk = await openDesk(() => ({ status: 400, message: "bad request" }), {
      llm,
      toolFormat: "completions",
    });
    expect(await ask(desk)).toMatchObject({ status: "failed" });
    expect(desk.providers.count).toBe(1);
  });

  it("one without credentials is skipped", async () => {
    const { env, ...environment } = new StrictProviders(() => reply.finish("ok")).environment;
    const desk = await openDesk(() => reply.finish("ok"), { llm, toolFormat: "completions" });
    const { fetch } = desk.providers;
    const other = await openDesk(
      () => ({}),
      { llm },
      {
        environment: { ...environment, fetch, env: { ...env, OPENAI_API_KEY: "" } },
      },
    );
    expect(await ask(other)).toMatchObject({ status: "completed" });
    expect(desk.providers.requests.map(({ wire }) => wire)).toEqual(["anthropic"]);
  });
});

it("the nine MAIL tools cost at most 1,050 tokens of a prompt", async () => {
  const desk = await openDesk(() => reply.finish("ok"), CHAT);
  await ask(desk);
  const tools = desk.providers.requests[0]?.body.tools;
  if (!Array.isArray(tools)) throw new Error("no tools were offered");
  const own = tools.filter((tool) => tool.function.name !== "look");
  expect(own).toHaveLength(9);
  // These schemas have 4.54 characters per token with the tokenizer of GPT-5 (6,232 characters were 1,373 tokens).
  expect(JSON.stringify(own).length / 4.54).toBeLessThan(1_050);
});

it("a stream of tiny pieces costs time in proportion to its length", { timeout: 60_000 }, async () => {
  const streamed = async (length: number): Promise<number> => {
    const args = JSON.stringify({ finish_message: "x".repeat(length) });
    const chunk = (delta: object, finish_reason: string | null = null) =>
      `data: ${JSON.stringify({ id: "1", created: 0, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    const piece = (text: string) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] });
    const begin = { index: 0, id: "c", type: "function", function: { name: "task_complete", arguments: "" } };
    const frames = [
      chunk({ role: "assistant", tool_calls: [begin] }),
      ...(args.match(/.{1,5}/g) ?? []).map(piece),
      chunk({}, "tool_calls"),
      "data: [DONE]\n\n",
    ];
    const send: typeof fetch = async () =>
      new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
    const options = { ...CHAT, streamTokens: true };
    const desk = await openDesk(() => ({}), options, { environment: { fetch: send } });
    const before = process.cpuUsage();
    const { response } = await ask(desk);
    const { user } = process.cpuUsage(before);
    expect(response).toHaveLength(length);
    return user;
  };
  await streamed(50_000);
  const short = await streamed(100_000);
  // Ten times the length: a quadratic cost would be 100 times as high.
  expect((await streamed(1_000_000)) / short).toBeLessThan(40);
});

/** Limits on what model calls use, through the providers' wire formats. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ModelEnvironment } from "../../src/agents/index.js";
import { deferred } from "../../src/base/index.js";
import {
  defineAction,
  defineAgent,
  defineSwarm,
  type JournalEntry,
  Mailroom,
  type MailroomOptions,
  type ModelAgentOptions,
  modelAgent,
} from "../../src/index.js";
import { loadConfig } from "../../src/server/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import type { Behaviour } from "./kit/model-server.js";
import { type StrictModel, StrictProviders, type StrictRequest } from "./kit/strict.js";
import { reply } from "./kit/swarm.js";

const CHAT = { llm: "openai/gpt-5", toolFormat: "completions" } as const;
const PRICES = { input: 2, output: 10 };
/** What every call reports unless a test says otherwise. */
const USAGE = { input: 2_000, output: 100 };
/** Of one such call. */
const COST = (2_000 * 2 + 100 * 10) / 1_000_000;

interface Options extends Partial<MailroomOptions> {
  readonly agent?: Partial<Omit<ModelAgentOptions, "llm">> & { readonly llm?: ModelAgentOptions["llm"] };
  readonly budget?: Parameters<typeof defineSwarm>[0]["budget"];
  readonly agentBudget?: Parameters<typeof defineSwarm>[0]["budget"];
  readonly environment?: ModelEnvironment;
  readonly prices?: typeof PRICES | false;
}

interface Desk {
  readonly mailroom: Mailroom;
  readonly providers: StrictProviders;
}

/** An agent that looks something up again and again, until its model finishes. */
async function openDesk(model: StrictModel, options: Options = {}): Promise<Desk> {
  const { agent, budget, agentBudget, environment, prices = PRICES, ...rest } = options;
  const providers = new StrictProviders(model);
  const look = defineAction({
    name: "look",
    description: "Looks",
    parameters: { type: "object", properties: {} },
    run: () => "nothing new",
  });
  const run = modelAgent(
    { ...CHAT, ...(prices !== false && { prices }), ...agent, system: "You are the desk." },
    { ...providers.environment, ...environment },
  );
  const swarm = defineSwarm({
    name: "desk",
    ...(budget !== undefined && { budget }),
    agents: [
      defineAgent({
        name: "desk",
        enableEntrypoint: true,
        canCompleteTasks: true,
        actions: [look],
        ...(agentBudget !== undefined && { budget: agentBudget }),
        run,
      }),
    ],
  });
  const mailroom = await Mailroom.open({ swarm, data: false, onProblem: () => {}, ...rest });
  onTestFinished(async () => {
    await mailroom.close({ grace: 0 });
    expect(providers.refused).toEqual([]);
  });
  return { mailroom, providers };
}

const look = (usage: { input: number; output: number } | undefined = USAGE): Behaviour => ({
  calls: [{ name: "look", args: {} }],
  ...(usage !== undefined && { usage }),
});
const always: StrictModel = () => look();

/** Looks `times` times in each task, then finishes. */
function lookThen(times: number): StrictModel {
  return ({ said }: StrictRequest) => {
    const results = said.flatMap((turn) => turn.results).length;
    return results < times ? look() : { ...reply.finish("done"), usage: USAGE };
  };
}

async function entriesOf({ mailroom }: Desk, user = "ann", task = "t"): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for await (const { entry } of (await mailroom.user(user).requireTask(task)).journal()) entries.push(entry);
  return entries;
}

const root = { role: "admin", id: "root" } as const;

describe("a limit on a task", () => {
  it.each([
    ["max_calls", { maxCalls: 3 }, 3],
    ["max_tokens", { maxTokens: 5_000 }, 3],
    ["max_cost", { maxCost: 2.5 * COST }, 3],
  ])(
    "[AGT-BUDGET-01] %s pauses it with the reason, and its owner can raise it",
    async (name, budget, calls) => {
      const desk = await openDesk(lookThen(4));
      const ann = desk.mailroom.user("ann");
      const paused = await ann.ask("go", { taskId: "t", budget });
      expect(paused).toMatchObject({ status: "paused", reason: "budget", breakpoints: [] });
      expect(paused.response).toContain(name);
      expect(paused.response).toContain("its owner can raise it");
      expect(desk.providers.count).toBe(calls);

      const task = await ann.requireTask("t");
      expect(await task.record()).toMatchObject({ status: "paused", reason: "budget", usage: { calls } });
      await task.setBudget({ maxCalls: 100, maxTokens: null, maxCost: null });
      for await (const event of task.events({ live: true })) if (event.data.status === "completed") break;
      expect(desk.providers.count).toBe(5);
      const record = await task.record();
      expect(record).toMatchObject({
        status: "completed",
        usage: { calls: 5, tokens: { input: 10_000, output: 500 }, agents: { desk: { calls: 5 } } },
        budget: { owner: { max_calls: 100 }, configured: {} },
      });
      expect(record.usage?.cost).toBeCloseTo(5 * COST, 9);
      const { tasks } = await ann.tasks();
      expect(tasks[0]?.usage).toMatchObject({ calls: 5, tokens: { input: 10_000, output: 500 } });
    },
  );

  it("a limit that is still reached keeps it paused, and another message pauses it again", async () => {
    const desk = await openDesk(always);
    const ann = desk.mailroom.user("ann");
    await ann.ask("go", { taskId: "t", budget: { maxCalls: 2, maxCost: 1 } });
    const task = await ann.requireTask("t");
    await task.setBudget({ maxCost: 2 });
    expect(await task.status()).toBe("paused");
    expect(await ann.ask("go on", { taskId: "t" })).toMatchObject({ status: "paused", reason: "budget" });
    expect(desk.providers.count).toBe(2);
    expect(await ann.ask("one more", { taskId: "t", budget: { maxCalls: 3 } })).toMatchObject({
      reason: "budget",
    });
    expect(desk.providers.count).toBe(3);
  });

  it("a limit of 0 allows no call", async () => {
    const desk = await openDesk(always);
    expect(await desk.mailroom.user("ann").ask("go", { budget: { maxCalls: 0 } })).toMatchObject({
      reason: "budget",
    });
    expect(desk.providers.count).toBe(0);
  });

  it.each([
    { maxCalls: -1 },
    { maxCost: Number.NaN },
    { maxTokens: 1.5 },
    { maxCost: Number.POSITIVE_INFINITY },
  ])("a limit of %o is rejected, and nothing happens", async (budget) => {
    const desk = await openDesk(always);
    const ann = desk.mailroom.user("ann");
    await expect(ann.post("go", { taskId: "t", budget })).rejects.toMatchObject({ code: "bad_input" });
    expect(await ann.task("t")).toBeUndefined();
  });

  it("the operator's limit of a task and of an agent can be raised by an admin only", async () => {
    const desk = await openDesk(always, { budget: { maxCalls: 2 }, agentBudget: { maxCalls: 3 } });
    const ann = desk.mailroom.user("ann");
    const paused = await ann.ask("go", { taskId: "t" });
    expect(paused).toMatchObject({ reason: "budget" });
    expect(paused.response).toContain("an admin can raise it");
    const task = await ann.requireTask("t");
    await task.setBudget({ maxCalls: 100 });
    expect(await task.status()).toBe("paused");
    const { runtime } = desk.mailroom;
    const by = { role: "user", id: "bob" } as const;
    for (const actor of [{ by }, { by, admin: true as const }, { by: root }]) {
      await expect(
        runtime.setTaskBudget(task.key, { limits: { maxCalls: 9 }, ...actor }),
      ).rejects.toMatchObject({
        code: "forbidden",
      });
    }
    const rest = (async () => {
      for await (const event of task.events({ live: true })) {
        if (event.data.status === "paused" && desk.providers.count > 2) return event.data.response;
      }
      return undefined;
    })();
    await runtime.setTaskBudget(task.key, { limits: { maxCalls: 9 }, by: root, admin: true });
    expect(await rest).toContain("the limit for agent 'desk' in one task is reached (max_calls: 3");
    expect(desk.providers.count).toBe(3);
    await expect(
      runtime.setTaskBudget(task.key, { limits: {}, agents: { nobody: {} }, by: root, admin: true }),
    ).rejects.toMatchObject({ code: "unknown_agent" });
  });
});

describe("what counts", () => {
  it("[AGT-BUDGET-02] failed calls count, and retries stop at the limit", async () => {
    const desk = await openDesk(() => ({ status: 529, message: "overloaded" }), {
      agent: { maxRetries: 10 },
    });
    const ann = desk.mailroom.user("ann");
    expect(await ann.ask("go", { taskId: "t", budget: { maxCalls: 4 } })).toMatchObject({ reason: "budget" });
    expect(desk.providers.count).toBe(4);
    expect((await (await ann.requireTask("t")).record()).usage).toMatchObject({ calls: 4, failed_calls: 4 });
  });

  it("calls of a turn that fails, and of one that is cancelled", async () => {
    const asked = deferred<void>();
    const desk = await openDesk((_request, count) => {
      if (count === 1) return { status: 400, message: "bad request" };
      asked.resolve();
      return { silent: true };
    });
    const ann = desk.mailroom.user("ann");
    expect(await ann.ask("go", { taskId: "t" })).toMatchObject({ status: "failed" });
    const task = await ann.requireTask("t");
    expect((await task.record()).usage).toMatchObject({ calls: 1, failed_calls: 1, tokens: { input: 0 } });
    await ann.post("again", { taskId: "t" });
    await asked.promise;
    await task.cancel();
    for await (const event of task.events({ live: true })) {
      // The aborted call is counted by estimate: the provider has read the prompt.
      if (event.event === "model_usage" && event.data.extra_data.estimated === true) break;
    }
    const { usage } = await task.record();
    expect(usage).toMatchObject({ calls: 2, failed_calls: 1 });
    expect(usage?.tokens.input).toBeGreaterThan(500);
  });

  it("each turn is an event with what it used", async () => {
    const desk = await openDesk(lookThen(1));
    await desk.mailroom.user("ann").ask("go", { taskId: "t" });
    const used = [];
    for await (const event of (await desk.mailroom.user("ann").requireTask("t")).events()) {
      if (event.event === "model_usage") used.push(event.data.extra_data);
    }
    expect(used).toEqual([
      {
        agent: "desk",
        model: "openai/gpt-5",
        calls: 1,
        failed_calls: 0,
        tokens: { ...USAGE, cached: 0 },
        cost: COST,
      },
      expect.objectContaining({ calls: 1 }),
    ]);
  });

  it("without limits nothing is written before a call", async () => {
    const desk = await openDesk(lookThen(1));
    await desk.mailroom.user("ann").ask("go", { taskId: "t" });
    expect((await entriesOf(desk)).filter(({ t }) => t === "usage")).toEqual([]);
  });
});

describe("a provider that lies about usage", () => {
  it.each([
    ["nothing", { input: 0, output: 0 }],
    ["one token", { input: 1, output: 1 }],
    ["negative numbers", { input: -5_000, output: -100 }],
  ])("[AGT-BUDGET-03] that reports %s cannot break a budget", async (_name, usage) => {
    const desk = await openDesk(() => look(usage));
    const ann = desk.mailroom.user("ann");
    const budget = { maxTokens: 10_000, maxCalls: 1_000 };
    expect(await ann.ask("go", { taskId: "t", budget })).toMatchObject({ reason: "budget" });
    const { usage: used } = await (await ann.requireTask("t")).record();
    expect(desk.providers.count).toBeLessThan(20);
    expect(used?.tokens.input).toBeGreaterThan(9_000);
    expect(used?.cost).toBeGreaterThan(0.015);
  });

  it("absurdly large numbers are cut to what the prompt allows", async () => {
    const desk = await openDesk(() => ({ ...reply.finish("ok"), usage: { input: 1e15, output: 1e15 } }));
    const ann = desk.mailroom.user("ann");
    expect(await ann.ask("go", { taskId: "t", budget: { maxCost: 1_000 } })).toMatchObject({
      status: "completed",
    });
    const { usage } = await (await ann.requireTask("t")).record();
    expect(usage?.tokens.input).toBeLessThan(100_000);
    expect(usage?.tokens.output).toBeLessThan(2_000_000);
  });

  it.each([
    ["NaN", { inputTokens: { total: Number.NaN }, outputTokens: { total: Number.NaN } }],
    ["no object", undefined],
    ["texts", { inputTokens: { total: "9" }, outputTokens: { total: "9" } }],
  ])("a model of the AI SDK that reports %s is counted by size", async (_name, usage) => {
    const model = {
      specificationVersion: "v3" as const,
      provider: "liar",
      modelId: "liar",
      supportedUrls: {},
      doGenerate: async () => ({
        content: [
          { type: "tool-call", toolCallId: "1", toolName: "task_complete", input: '{"finish_message":"ok"}' },
        ],
        finishReason: { unified: "tool-calls", raw: undefined },
        usage,
        warnings: [],
      }),
      doStream: async () => {
        throw new Error("not streamed");
      },
    };
    const desk = await openDesk(always, { agent: { llm: model } });
    const ann = desk.mailroom.user("ann");
    expect(await ann.ask("go", { taskId: "t" })).toMatchObject({ status: "completed" });
    const { usage: used } = await (await ann.requireTask("t")).record();
    expect(used?.tokens.input).toBeGreaterThan(500);
    expect(used?.tokens.output).toBeGreaterThan(0);
  });
});

describe("prices", () => {
  it("[AGT-BUDGET-04] a model without a price pauses a task with max_cost and is named", async () => {
    const { mailroom, providers } = await openDesk(always, { prices: false });
    const paused = await mailroom.user("ann").ask("go", { taskId: "t", budget: { maxCost: 1 } });
    expect(paused).toMatchObject({ status: "paused", reason: "budget" });
    expect(paused.response).toContain("no price is configured for openai/gpt-5");
    expect(providers.count).toBe(0);
    const unlimited = { maxCost: null, maxCalls: 1 };
    expect(await mailroom.user("ann").ask("go", { taskId: "t", budget: unlimited })).toMatchObject({
      response: expect.stringContaining("max_calls"),
    });
    expect(providers.count).toBe(1);
  });

  it("the example file is valid, and negative prices and limits in one are rejected with their key", () => {
    const path = join(import.meta.dirname, "../../examples/budgets.toml");
    const { settings } = loadConfig({ flags: {}, env: { MAIL_CONFIG_PATH: path }, directory: tmpdir() });
    expect(settings.models.prices["openai/gpt-5"]).toMatchObject({ input: 1.25, output: 10 });
    expect(settings.runtime).toMatchObject({
      taskBudget: { maxCost: 2, maxCalls: 200 },
      callerBudget: { maxCost: 10 },
    });
    const folder = mkdtempSync(join(tmpdir(), "mailroom-prices-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    for (const [text, key] of [
      ['[models.prices]\n"a/b" = { input = -1, output = 1 }', "models.prices"],
      ["[budgets]\nday = { max_cost = -1 }", "budgets.day"],
      ["[budgets]\ntask = { max_money = 1 }", "budgets.task"],
    ] as const) {
      const file = join(folder, "mail.toml");
      writeFileSync(file, text);
      expect(() => loadConfig({ flags: {}, env: { MAIL_CONFIG_PATH: file }, directory: folder })).toThrow(
        key,
      );
    }
  });

  it("negative prices are rejected when the agent is defined", () => {
    expect(() => modelAgent({ ...CHAT, prices: { input: -1, output: 1 } })).toThrow(/prices\.input/);
  });
});

describe("limits by day", () => {
  it("[AGT-BUDGET-05] tasks of one caller that run at once stay within the caller's limit", async () => {
    const desk = await openDesk(lookThen(5), { limits: { callerBudget: { maxCalls: 10 } } });
    const ann = desk.mailroom.user("ann");
    const answers = await Promise.all([...Array(8).keys()].map((n) => ann.ask("go", { taskId: `t${n}` })));
    expect(answers.every(({ status }) => status === "paused")).toBe(true);
    expect(desk.providers.count).toBe(10);
    // Another caller has a limit of its own.
    expect(await desk.mailroom.user("bob").ask("go")).toMatchObject({ status: "completed" });
    expect(desk.providers.count).toBe(16);
  });

  it("[AGT-BUDGET-09] tasks that the estimates of others kept waiting continue when there is room again", async () => {
    const used = deferred<number>();
    const begun: string[] = [];
    const run = defineAgent({
      name: "desk",
      enableEntrypoint: true,
      canCompleteTasks: true,
      run: async (mail) => {
        await mail.beginCall({ model: "own", inputTokens: 1_000 });
        begun.push(mail.body);
        mail.reportUsage({ model: "own", inputTokens: begun.length === 1 ? await used.promise : 10 });
        mail.complete(mail.body);
      },
    });
    const swarm = defineSwarm({ name: "desk", agents: [run] });
    const mailroom = await Mailroom.open({
      swarm,
      data: false,
      onProblem: () => {},
      limits: { callerBudget: { maxTokens: 900 } },
    });
    onTestFinished(async () => void (await mailroom.close({ grace: 0 })));
    const ann = mailroom.user("ann");
    const first = ann.ask("first");
    const follow = await ann.post("t0", { taskId: "t0" });
    expect((await follow.outcome).reason).toBe("budget");
    for (const id of ["t1", "t2"])
      expect(await ann.ask(id, { taskId: id })).toMatchObject({ reason: "budget" });
    expect(begun).toEqual(["first"]);
    used.resolve(10);
    expect(await first).toMatchObject({ status: "completed" });
    for (const id of ["t0", "t1", "t2"]) {
      const task = await ann.requireTask(id);
      for await (const event of task.events({ live: true })) if (event.data.status === "completed") break;
    }
    // The one that has waited longest comes first.
    expect(begun).toEqual(["first", "t0", "t1", "t2"]);
    const kinds: string[] = [];
    const waited = await ann.requireTask("t2");
    for await (const { entry } of waited.journal()) kinds.push(entry.t);
    expect(kinds.filter((kind) => kind === "paused")).toHaveLength(1);
  });

  it("[AGT-BUDGET-06] the next UTC day continues paused tasks with new limits", async () => {
    const clock = new VirtualClock(Date.UTC(2026, 5, 30, 23, 59, 0));
    const desk = await openDesk(lookThen(5), { clock, limits: { dayBudget: { maxCalls: 4 } } });
    const ann = desk.mailroom.user("ann");
    const paused = await ann.ask("go", { taskId: "t" });
    expect(paused).toMatchObject({ reason: "budget" });
    expect(paused.response).toContain("the server's daily limit (UTC) is reached (max_calls: 4");
    const task = await ann.requireTask("t");
    clock.advance(30_000);
    expect(await ann.ask("now?", { taskId: "u" })).toMatchObject({ status: "paused" });
    expect(desk.providers.count).toBe(4);
    clock.advance(30_000);
    for await (const event of task.events({ live: true })) if (event.data.status === "completed") break;
    const { usage } = desk.mailroom.store;
    expect((await usage?.ofDay("2026-06-30"))?.calls).toBe(4);
    expect((await usage?.ofDay("2026-07-01"))?.calls).toBeGreaterThanOrEqual(2);
  });

  it("[AGT-BUDGET-10] a limit of a caller in total does not begin again, and an admin can raise it", async () => {
    const clock = new VirtualClock(Date.UTC(2026, 5, 30, 23, 59, 0));
    const limits = { callerTotalBudget: { maxCalls: 8 } };
    const desk = await openDesk(lookThen(5), { clock, limits });
    const ann = desk.mailroom.user("ann");
    expect(await ann.ask("go")).toMatchObject({ status: "completed" });
    clock.advance(24 * 60 * 60 * 1_000);
    const paused = await ann.ask("go", { taskId: "t" });
    expect(paused.response).toContain("the limit for all tasks of user:ann is reached (max_calls: 8");
    expect(desk.providers.count).toBe(8);
    clock.advance(24 * 60 * 60 * 1_000);
    expect(await ann.ask("now?", { taskId: "u" })).toMatchObject({ status: "paused" });
    expect(await desk.mailroom.user("bob").ask("go")).toMatchObject({ status: "completed" });
    expect(desk.providers.count).toBe(14);
    const caller = { role: "user", id: "ann" } as const;
    await desk.mailroom.runtime.setDailyBudget({ caller, total: true }, { maxCalls: null });
    for (const id of ["t", "u"]) {
      const task = await ann.requireTask(id);
      for await (const event of task.events({ live: true })) if (event.data.status === "completed") break;
    }
    expect(desk.providers.count).toBeGreaterThan(14);
  });

  it("[AGT-BUDGET-10] retention removes old days, and a limit in total still counts them", async () => {
    const DAY = 24 * 60 * 60 * 1_000;
    const clock = new VirtualClock(Date.UTC(2026, 5, 28, 12, 0, 0));
    const limits = { callerTotalBudget: { maxCalls: 8 } };
    const desk = await openDesk(lookThen(1), { clock, limits, retention: { usageAge: DAY, interval: 1e9 } });
    const { mailroom } = desk;
    const ann = mailroom.user("ann");
    const caller = { role: "user", id: "ann" } as const;
    // Three days with two calls each: two days are removed in one round, and one in the next.
    for (let day = 0; day < 3; day++) {
      expect(await ann.ask("go")).toMatchObject({ status: "completed" });
      clock.advance(DAY);
    }
    const before = await mailroom.budgets.total(caller);
    expect(before).toMatchObject({ calls: 6, cost: expect.closeTo(6 * COST) });
    await mailroom.sweep();
    expect((await mailroom.budgets.days({ caller })).map(({ day }) => day)).toEqual(["2026-06-30"]);
    expect((await mailroom.budgets.days({})).map(({ day }) => day)).toEqual(["2026-06-30"]);
    expect((await mailroom.budgets.day("2026-06-28")).agents).toEqual([]);
    clock.advance(DAY);
    await mailroom.sweep();
    expect(await mailroom.budgets.days({ caller })).toEqual([]);
    expect(await mailroom.budgets.total(caller)).toEqual({
      ...before,
      cost: expect.closeTo(6 * COST),
    });
    expect(await ann.ask("go")).toMatchObject({ status: "completed" });
    const paused = await ann.ask("go");
    expect(paused.response).toContain("the limit for all tasks of user:ann is reached (max_calls: 8");
    expect(desk.providers.count).toBe(8);
  });

  it("limits of an admin replace the configured ones, continue tasks and survive a restart", async () => {
    const data = mkdtempSync(join(tmpdir(), "mailroom-budgets-"));
    onTestFinished(() => rmSync(data, { recursive: true, force: true }));
    const limits = { callerBudget: { maxCalls: 2 } };
    const first = await openDesk(lookThen(5), { data, limits });
    const ann = first.mailroom.user("ann");
    expect(await ann.ask("go", { taskId: "t" })).toMatchObject({ reason: "budget" });
    const caller = { role: "user", id: "ann" } as const;
    await expect(first.mailroom.runtime.setDailyBudget({ caller }, { maxCalls: -1 })).rejects.toMatchObject({
      code: "bad_input",
    });
    await first.mailroom.runtime.setDailyBudget({ caller }, { maxCalls: 4 });
    const task = await ann.requireTask("t");
    for await (const event of task.events({ live: true })) {
      if (event.data.status === "paused" && first.providers.count > 2) break;
    }
    expect(first.providers.count).toBe(4);
    await first.mailroom.close({ grace: 0 });

    const second = await openDesk(lookThen(5), { data, limits });
    expect(await second.mailroom.user("ann").ask("more", { taskId: "u" })).toMatchObject({
      reason: "budget",
    });
    expect(await second.mailroom.runtime.dailyBudget({ caller })).toEqual({ maxCalls: 4 });
    expect(second.providers.count).toBe(0);
  });
});

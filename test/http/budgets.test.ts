/** Usage and budgets over HTTP: owners change their limits, admins the others, and everybody sees what is theirs. */
import { afterEach, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { defineAction, defineAgent, defineSwarm, type LanguageModel, modelAgent } from "../../src/index.js";
import type { MailroomOptions } from "../../src/library/mailroom.js";
import { type Harness, startServer } from "./harness.js";

const ANN = "user-token-ann";
const BOB = "user-token-bob";
const ROOT = "admin-token-root";

/** A model that looks at something in each call until it has results of three calls. */
function lookingModel(): LanguageModel & { calls: number } {
  const model = {
    specificationVersion: "v3" as const,
    provider: "test",
    modelId: "looking",
    supportedUrls: {},
    calls: 0,
    doGenerate: async ({ prompt }: { prompt: readonly { role: string }[] }) => {
      model.calls++;
      const done = prompt.filter(({ role }) => role === "tool").length >= 3;
      const call = done
        ? { toolName: "task_complete", input: '{"finish_message":"seen"}' }
        : { toolName: "look", input: "{}" };
      return {
        content: [{ type: "tool-call", toolCallId: `c${model.calls}`, ...call }],
        finishReason: { unified: "tool-calls", raw: undefined },
        usage: { inputTokens: { total: 3_000 }, outputTokens: { total: 100 } },
        warnings: [],
      };
    },
    doStream: async () => {
      throw new Error("not streamed");
    },
  };
  return model;
}

let harness: Harness;
let model: ReturnType<typeof lookingModel>;
afterEach(() => harness.close());

async function serve(options: Partial<MailroomOptions> = {}): Promise<void> {
  model = lookingModel();
  const look = defineAction({
    name: "look",
    description: "Looks",
    parameters: { type: "object", properties: {} },
    run: () => "nothing",
  });
  const run = modelAgent({ llm: model, prices: { input: 2, output: 10 } });
  const swarm = defineSwarm({
    name: "alpha",
    agents: [
      defineAgent({ name: "desk", enableEntrypoint: true, canCompleteTasks: true, actions: [look], run }),
    ],
  });
  harness = await startServer({ room: { swarm, ...options } });
}

const as = (token: string) => new MailClient(harness.url, { token });

/** Waits until Ann's task has this status after this many model calls. */
async function reached(status: "paused" | "completed", calls?: number): Promise<void> {
  const task = await harness.mailroom.user("user-ann").requireTask("t");
  for await (const { data } of task.events({ live: true })) {
    if (data.status === status && (calls === undefined || model.calls === calls)) return;
  }
}

async function audited(token: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const { actor, action, right, owner } of as(token).audit()) {
    lines.push(`${actor} ${action} ${right} ${owner}`);
  }
  return lines;
}

describe("budgets", () => {
  it("[AGT-BUDGET-08] an owner raises the limits of their task, and other users do not see it", async () => {
    await serve();
    const paused = await as(ANN).postMessage("go", { taskId: "t", kwargs: { budget: { max_calls: 2 } } });
    expect(paused).toMatchObject({ status: "paused", reason: "budget" });
    expect(paused.response).toContain("max_calls: 2");
    expect(
      (await harness.call("/tasks/t/budget", { token: BOB, json: { budget: { max_calls: 9 } } })).status,
    ).toBe(404);
    for (const json of [{ max_calls: -1 }, { max_tokens: 1.5 }, { max_cost: "1" }, { max_money: 1 }]) {
      const field = `budget.${Object.keys(json)[0]}`;
      expect(await harness.call("/tasks/t/budget", { token: ANN, json: { budget: json } })).toMatchObject({
        status: 400,
        body: { field, detail: expect.stringContaining(field) },
      });
      expect(
        await harness.call("/message", { token: ANN, json: { body: "x", kwargs: { budget: json } } }),
      ).toMatchObject({ status: 400, body: { field: `kwargs.${field}` } });
    }
    expect(model.calls).toBe(2);
    const raised = await as(ANN).setTaskBudget("t", { max_calls: null, max_cost: 5 });
    expect(raised).toMatchObject({ task_id: "t", budget: { owner: { max_cost: 5 }, configured: {} } });
    await reached("completed");
    const task = await as(ANN).getTask("t");
    expect(task.usage).toMatchObject({ calls: 4, tokens: { input: 12_000, output: 400 }, cost: 0.028 });
    const { tasks } = await as(ANN).getTaskPage();
    expect(tasks[0]?.usage).toMatchObject({ calls: 4, failed_calls: 0 });
    const digest = await harness.call("/tasks/digest", { token: ANN, json: { tasks: ["t"] } });
    expect(digest.body).toMatchObject({
      digests: [{ model_calls: 4, failed_model_calls: 0, cost: expect.closeTo(0.028, 9) }],
    });
    expect(await audited(ANN)).toEqual(["user:user-ann budget owner user:user-ann"]);
    expect(await audited(BOB)).toEqual([]);
  });

  it("[AGT-BUDGET-08] only admins raise the operator's limits, for a task, a caller and the server", async () => {
    await serve({ limits: { taskBudget: { maxCalls: 1 }, callerBudget: { maxCalls: 2 } } });
    expect(await as(ANN).postMessage("go", { taskId: "t" })).toMatchObject({ reason: "budget" });
    const { key = "" } = await as(ANN).getTask("t");
    for (const path of [
      `/admin/tasks/${key}/budget`,
      "/admin/budgets/day",
      "/admin/budgets/callers/user:user-ann",
      "/admin/budgets/callers/user:user-ann/total",
    ]) {
      expect((await harness.call(path, { token: ANN, json: { budget: { max_calls: 99 } } })).status).toBe(
        403,
      );
    }
    const admin = as(ROOT).admin;
    await admin.setTaskBudget(key, { max_calls: 50 });
    await reached("paused", 2);
    expect(await admin.setCallerBudget("user:user-ann", { max_calls: 3 })).toEqual({ max_calls: 3 });
    await reached("paused", 3);
    expect(await admin.getBudgets()).toMatchObject({
      configured: { task: { max_calls: 1 }, caller: { max_calls: 2 }, day: {} },
      callers: [{ caller: "user:user-ann", budget: { max_calls: 3 } }],
    });
    const total = async () => (await as(ANN).getUsage()).total;
    expect(await total()).toMatchObject({ usage: { calls: 3 }, budget: {} });
    expect(await admin.setCallerTotalBudget("user:user-ann", { max_calls: 90 })).toEqual({ max_calls: 90 });
    expect((await total())?.budget).toEqual({ max_calls: 90 });
    // Beside the limits for a day, and of a caller without any.
    await admin.setCallerTotalBudget("swarm:a:b", { max_cost: 7 });
    const ann = { caller: "user:user-ann", budget: { max_calls: 3 }, total: { max_calls: 90 } };
    const other = { caller: "swarm:a:b", budget: { max_calls: 2 }, total: { max_cost: 7 } };
    expect((await admin.getBudgets()).callers).toEqual([other, ann]);
    expect(await admin.getBudgets({ limit: 1 })).toMatchObject({ callers: [other], next_after: "swarm:a:b" });
    expect((await admin.getBudgets({ after: "swarm:a:b" })).callers).toEqual([ann]);
    await admin.setCallerTotalBudget("swarm:a:b", null);
    expect(await admin.setCallerTotalBudget("user:user-ann", null)).toEqual({});
    expect(await admin.setDayBudget({ max_cost: 10 })).toEqual({ max_cost: 10 });
    // Changes at the same time keep each other's limits.
    await Promise.all([
      admin.setDayBudget({ max_tokens: 1_000_000 }),
      admin.setDayBudget({ max_calls: 500 }),
    ]);
    expect((await admin.getBudgets()).day).toEqual({ max_cost: 10, max_tokens: 1_000_000, max_calls: 500 });
    expect(await admin.setDayBudget(null)).toEqual({});
    await admin.setCallerBudget("user:user-ann", { max_calls: null });
    await reached("completed");
    expect(await admin.setCallerBudget("user:user-ann", null)).toEqual({ max_calls: 2 });
    expect((await audited(ROOT)).filter((line) => line.startsWith("admin:root budget admin"))).toHaveLength(
      12,
    );
    const unknown = await harness.call(`/admin/tasks/${key}/budget`, {
      token: ROOT,
      json: { agents: { nobody: { max_calls: 1 } } },
    });
    expect(unknown.status).toBe(400);
  });
});

describe("usage", () => {
  it("is shown by day, agent and caller to admins, and to users for themselves", async () => {
    await serve();
    await as(ANN).postMessage("go");
    await as(BOB).postMessage("go");
    await as(BOB).postMessage("go");
    const mine = await as(ANN).getUsage();
    expect(mine.today).toMatchObject({
      usage: { calls: 4 },
      agents: [{ agent: "desk", usage: { calls: 4 } }],
    });
    expect(mine.days).toHaveLength(1);
    const all = await as(ROOT).admin.getUsage({ day: mine.today.day, from: mine.today.day });
    expect(all).toMatchObject({
      usage: { calls: 12, tokens: { input: 36_000, output: 1_200 } },
      agents: [{ agent: "desk", usage: { calls: 12 } }],
      callers: [
        { caller: "user:user-bob", usage: { calls: 8 } },
        { caller: "user:user-ann", usage: { calls: 4 } },
      ],
      days: [{ usage: { calls: 12 } }],
    });
    expect((await as(ROOT).admin.getUsage({ day: "2001-01-01" })).usage).toBeNull();
    expect((await harness.call("/admin/usage", { token: ANN })).status).toBe(403);
    expect((await harness.call("/usage?from=yesterday", { token: ANN })).status).toBe(400);
    const { text } = await harness.call("/metrics", { token: ROOT });
    expect(text).toContain('mailroom_model_calls_total{agent="desk",kind="all"} 12');
    expect(text).toContain('mailroom_model_tokens_total{agent="desk",kind="input"} 36000');
    expect(text).toMatch(/mailroom_model_cost_total\{agent="desk",kind="all"\} 0\.08/);
  });
});

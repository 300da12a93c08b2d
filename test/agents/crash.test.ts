/** SIGKILL during model calls and actions: the task continues, and nothing that has finished is repeated. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { JournalEntry } from "../../src/index.js";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import type { ChildOptions } from "./child.js";
import { type Model, ModelServer } from "./kit/model-server.js";
import { reply } from "./kit/swarm.js";

/** The head asks the clerk, the clerk calls two actions in one turn, and both answer. */
const thinking: Model = ({ agent, said, newest }) => {
  if (agent === "head") {
    const answer = /<from type="agent">clerk<\/from>[\s\S]*<body>(.*)<\/body>/.exec(newest)?.[1];
    return answer === undefined ? reply.ask("clerk", "What is in stock?") : reply.finish(answer);
  }
  const results = said.flatMap((turn) => turn.results.map(({ content }) => content));
  if (results.length > 0) return reply.respond("head", results.join("; "));
  return {
    calls: [
      { name: "look_up", args: { item: "ink" } },
      { name: "reserve", args: { item: "paper" } },
    ],
  };
};

const WAYS: readonly Pick<ChildOptions, "llm" | "toolFormat">[] = [
  { llm: "openai/gpt-test", toolFormat: "completions" },
  { llm: "openai/gpt-test", toolFormat: "responses" },
  { llm: "anthropic/claude-sonnet-4-5", toolFormat: "completions" },
  { llm: "google/gemini-test", toolFormat: "completions" },
];

let compiled: CompiledChild;
let models: ModelServer;
let data: string;

beforeAll(() => {
  compiled = compileChild("agents");
}, 60_000);
afterAll(() => compiled.remove());
beforeEach(async () => {
  models = await ModelServer.start(thinking);
  data = mkdtempSync(join(tmpdir(), "mailroom-agents-"));
});
afterEach(async () => {
  await models.close();
  rmSync(data, { recursive: true, force: true });
  // The server rejects what a provider would reject, such as a call without its result.
  expect(models.complaints).toEqual([]);
});

interface Life {
  readonly child: ChildProcess;
  /** The first line of output; undefined if the process died before. */
  readonly said: Promise<string | undefined>;
  readonly ended: Promise<unknown>;
}

type Way = Pick<ChildOptions, "llm" | "toolFormat" | "maxCalls">;

function live(way: Way, hold?: string): Life {
  const options: ChildOptions = { data, env: models.env, ...way, ...(hold !== undefined && { hold }) };
  const child = spawn(process.execPath, [compiled.script, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const said = new Promise<string | undefined>((resolve) => {
    lines.once("line", resolve);
    lines.once("close", () => resolve(undefined));
  });
  return { child, said, ended: new Promise((resolve) => child.once("close", resolve)) };
}

async function lastLife(way: Way): Promise<JournalEntry[]> {
  const { said, ended } = live(way);
  const line = (await said) ?? "";
  await ended;
  expect(line).toMatch(/^DONE /);
  return JSON.parse(line.slice("DONE ".length));
}

function effects(name: string): number {
  const lines = readFileSync(join(data, "effects.log"), "utf8").trim().split("\n");
  return lines.filter((line) => line.startsWith(`${name} `)).length;
}

function answerOf(journal: readonly JournalEntry[]): string | undefined {
  const end = journal.find((entry) => entry.t === "completed");
  return end?.t === "completed" ? end.message.message.body : undefined;
}

/** Once an action has finished it is never started again. */
function expectNothingRepeated(journal: readonly JournalEntry[]): void {
  const finished = new Set<string>();
  for (const entry of journal) {
    if (entry.t === "action_finished") finished.add(entry.call);
    if (entry.t === "action_started") expect(finished).not.toContain(entry.call);
  }
}

/** Every call of a task in one wire format, and in the others the one whose history has calls and results. */
const KILLS = WAYS.flatMap((way, index) =>
  (index === 0 ? [1, 2, 3, 4] : [3]).map((nth) => ({ ...way, nth })),
);

describe("killed during a model call", { timeout: 60_000 }, () => {
  it.each(KILLS)(
    "[AGT-CRASH-01] $llm ($toolFormat), call $nth: it asks again and does nothing twice",
    async ({ nth, ...way }) => {
      const asked = new Promise<void>((resolve) => {
        models.model = (request, count) => {
          if (count !== nth) return thinking(request, count);
          resolve();
          return { silent: true };
        };
      });
      const first = live(way);
      await asked;
      first.child.kill("SIGKILL");
      await first.ended;
      const journal = await lastLife(way);
      expect(answerOf(journal)).toBe("SUCCESS: look_up of ink; SUCCESS: reserve of paper");
      expectNothingRepeated(journal);
      expect([effects("look_up"), effects("reserve")]).toEqual([1, 1]);
      expect(models.requests).toHaveLength(5);
    },
  );
});

describe("killed during a model call of a task with a budget", { timeout: 60_000 }, () => {
  it("[AGT-BUDGET-07] the call counts although its end is unknown, and the limit holds over restarts", async () => {
    const way = { ...(WAYS[0] ?? expect.fail()), maxCalls: 4 };
    for (const nth of [2, 3]) {
      const asked = new Promise<void>((resolve) => {
        models.model = (request, count) => {
          if (count !== nth) return thinking(request, count);
          resolve();
          return { silent: true };
        };
      });
      const life = live(way);
      await asked;
      life.child.kill("SIGKILL");
      await life.ended;
    }
    const journal = await lastLife(way);
    // One call of the head, two of the clerk that were killed, and one that was answered.
    expect(models.requests).toHaveLength(4);
    expect(journal.at(-1)).toMatchObject({ t: "paused", reason: "budget" });
    expect(journal.filter((entry) => entry.t === "usage" && entry.begun === true)).toHaveLength(4);
    // The next process does not call either.
    expect((await lastLife(way)).at(-1)).toMatchObject({ t: "paused", reason: "budget" });
    expect(models.requests).toHaveLength(4);
  });
});

describe("killed during an action", { timeout: 60_000 }, () => {
  it("[AGT-CRASH-02] an idempotent action runs again under the same call", async () => {
    const first = live(WAYS[0] ?? expect.fail(), "look_up");
    expect(await first.said).toBe("HELD look_up");
    first.child.kill("SIGKILL");
    await first.ended;
    const journal = await lastLife(WAYS[0] ?? expect.fail());
    expect(answerOf(journal)).toBe("SUCCESS: look_up of ink; SUCCESS: reserve of paper");
    expectNothingRepeated(journal);
    const attempts = journal.filter((entry) => entry.t === "action_started" && entry.name === "look_up");
    expect(attempts).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
    expect(effects("look_up")).toBe(2);
  });

  it("[AGT-CRASH-03] another action is not repeated, and the agent receives an unknown outcome", async () => {
    const first = live(WAYS[2] ?? expect.fail(), "reserve");
    expect(await first.said).toBe("HELD reserve");
    first.child.kill("SIGKILL");
    await first.ended;
    const journal = await lastLife(WAYS[2] ?? expect.fail());
    expect(answerOf(journal)).toMatch(/^SUCCESS: look_up of ink; ERROR: .*outcome unknown/);
    expectNothingRepeated(journal);
    expect(effects("reserve")).toBe(1);
  });
});

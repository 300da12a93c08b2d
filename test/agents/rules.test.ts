/**
 * The rules of the providers: each rule refuses a planted violation, and none refuses a request that Mailroom
 * sends, whatever the history before it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  defineAction,
  defineAgent,
  defineSwarm,
  type Instance,
  Mailroom,
  type ModelAgentOptions,
  modelAgent,
  type Task,
} from "../../src/index.js";
import type { Behaviour } from "./kit/model-server.js";
import { RULES, validRequest, type WireName } from "./kit/rules.js";
import { StrictProviders, type StrictRequest, URL_OF } from "./kit/strict.js";

const WIRES: readonly WireName[] = ["chat", "deepseek", "responses", "anthropic", "gemini"];

describe.each(WIRES)("the rules of %s", (wire) => {
  it.each(RULES[wire])("$id refuses a planted violation: $source", ({ check, violation }) => {
    const { body, issued } = validRequest(wire);
    expect(check(body, issued)).toBeUndefined();
    expect(check(violation, issued)).toBeTypeOf("string");
  });
});

/** A generator of numbers that a seed determines (mulberry32). */
class Dice {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }
  chance(share: number): boolean {
    return this.next() < share;
  }
  pick<T>(from: readonly [T, ...T[]]): T {
    return from[this.below(from.length)] ?? from[0];
  }
}

const AGENTS = ["head", "clerk", "scout"] as const;

const MODELS: readonly (Pick<ModelAgentOptions, "llm"> & Partial<ModelAgentOptions>)[] = [
  { llm: "openai/gpt-5", toolFormat: "completions" },
  { llm: "openai/gpt-5", toolFormat: "responses", reasoningEffort: "low" },
  { llm: "anthropic/claude-sonnet-4-5", reasoningEffort: "low" },
  { llm: "anthropic/claude-opus-5-5", reasoningEffort: "high" },
  { llm: "google/gemini-3-pro-preview" },
  { llm: "deepseek/deepseek-chat", baseUrl: URL_OF },
  { llm: ["anthropic/claude-opus-5-5", "google/gemini-3-pro-preview", "openai/gpt-5"] },
];

/** What a model may do, however odd. */
function oddModel(dice: Dice): (request: StrictRequest, count: number) => Behaviour {
  return (request, count) => {
    if (request.tools.length === 0) return dice.chance(0.2) ? { text: "" } : { text: `So far: ${count}.` };
    const isQuiet = request.wire === "chat" || (request.wire !== "deepseek" && dice.chance(0.3));
    const reasoning = isQuiet ? {} : { reasoning: "hm" };
    const id = dice.chance(0.3) ? { id: "call_0" } : {};
    const call = (name: string, args: object) => ({ name, args, ...id });
    const peer = dice.pick(AGENTS);
    const finish = call("task_complete", { finish_message: `done ${count}` });
    if (request.toolChoice === "task_complete") return { ...reasoning, calls: [finish] };
    const roll = dice.below(100);
    if (roll < 3)
      return { status: dice.pick([429, 500, 529]), message: "not now", headers: { "retry-after-ms": "1" } };
    if (roll < 4) return { status: 400, message: "prompt is too long: 9 tokens > 8 maximum" };
    if (roll < 7) return { ...reasoning, text: `I would say ${count}` };
    if (roll < 9) return { ...reasoning, calls: [{ name: "look_up", raw: '{"item": "in', ...id }] };
    if (roll < 11) return { ...reasoning };
    if (roll < 12) return { refusal: "I cannot help with that.", finish: "content_filter" };
    if (roll < 13) return { text: "A long story that", finish: "length" };
    if (roll < 15) return { cutAfter: 2, reply: { ...reasoning, text: "well", calls: [finish] } };
    if (roll < 50) {
      const size = dice.chance(0.1) ? 20_000 : dice.below(600);
      const items = Array.from({ length: 1 + dice.below(3) }, (_, at) =>
        call("look_up", { item: `${count} ${at} ${size}` }),
      );
      return { ...reasoning, ...(dice.chance(0.3) && { text: "Let me see." }), calls: items };
    }
    if (roll < 53)
      return {
        ...reasoning,
        calls: [
          call("look_up", { item: "1" }),
          ...Array.from({ length: 1 + dice.below(2) }, (_, at) => call("pay", { item: `${count} ${at}` })),
          call("look_up", { item: "2" }),
        ],
      };
    if (roll < 56)
      return {
        ...reasoning,
        calls: [call("ask_person", { question: `${count}?` }), call("look_up", { item: "1" })],
      };
    if (roll < 58) return { ...reasoning, calls: [call("no_such_tool", { a: 1 })] };
    if (roll < 66)
      return {
        ...reasoning,
        calls: [
          call("send_request", { target: peer, subject: "s", body: `b ${count}` }),
          call("await_message", { reason: "r" }),
        ],
      };
    if (roll < 74)
      return {
        ...reasoning,
        calls: [call("send_response", { target: peer, subject: "s", body: `b ${count}` })],
      };
    if (roll < 79)
      return {
        ...reasoning,
        calls: [call("send_broadcast", { subject: "s", body: `b ${count}`, targets: [peer] })],
      };
    if (roll < 82)
      return {
        ...reasoning,
        calls: [call("send_interrupt", { target: peer, subject: "s", body: `b ${count}` })],
      };
    if (roll < 86) return { ...reasoning, calls: [call("ignore_broadcast", { reason: "r" })] };
    if (roll < 88) return { ...reasoning, calls: [call("acknowledge_broadcast", { note: "n" })] };
    if (roll < 91) return { ...reasoning, calls: [finish, call("look_up", { item: "late" })] };
    return { ...reasoning, calls: [finish] };
  };
}

function swarmOf(providers: StrictProviders, options: (typeof MODELS)[number], streamTokens: boolean) {
  const lookUp = defineAction({
    name: "look_up",
    description: "Looks something up",
    parameters: { type: "object", properties: { item: { type: "string" } }, required: ["item"] },
    idempotent: true,
    run: ({ item }) => {
      if (String(item).endsWith("7")) throw new Error("nobody knows");
      return `${item}: ${"x".repeat(Number(String(item).split(" ").at(-1)) || 0)}`;
    },
  });
  const askPerson = defineAction({
    name: "ask_person",
    description: "Asks a person",
    parameters: { type: "object", properties: { question: { type: "string" } } },
    run: () => "",
  });
  const pay = defineAction({
    ...lookUp,
    name: "pay",
    description: "Pays",
    idempotent: false,
    approval: true,
  });
  const run = modelAgent(
    { ...options, system: "You work.", streamTokens, contextWindow: 9_000, maxRetries: 3 },
    providers.environment,
  );
  return defineSwarm({
    name: "office",
    breakpointTools: ["ask_person"],
    agents: AGENTS.map((name) =>
      defineAgent({
        name,
        enableEntrypoint: name === "head",
        canCompleteTasks: name === "head",
        commTargets: AGENTS.filter((other) => other !== name),
        actions: [lookUp, askPerson, pay],
        run,
      }),
    ),
  });
}

/** Approves, changes or rejects what waits; sometimes only the first call. */
async function decide(task: Task, waiting: readonly { readonly id: string }[], dice: Dice): Promise<void> {
  const some = dice.chance(0.5) ? waiting : waiting.slice(0, 1);
  const ended = await task.decide(
    some.map(({ id: callId }) =>
      dice.chance(0.3)
        ? { callId, decision: "reject", reason: "too much" }
        : { callId, decision: "approve", ...(dice.chance(0.3) && { args: { item: "changed 5" } }) },
    ),
  );
  if (ended.status === "paused" && (ended.approvals ?? []).length > 0) {
    await decide(task, ended.approvals ?? [], dice);
  }
}

/** A person who writes, interrupts, answers breakpoints, decides approvals and cancels. */
async function person(user: Instance, dice: Dice, enough: () => boolean): Promise<void> {
  for (let round = 0; !enough(); round++) {
    const taskId = `t${Math.floor(round / 6)}`;
    const { task, outcome } = await user.post(`Do ${round}. ${"y".repeat(dice.below(300))}`, {
      taskId,
      maxSteps: 3 + dice.below(20),
    });
    if (dice.chance(0.3)) await user.post("No, stop!", { taskId, type: "interrupt" }).catch(() => {});
    if (dice.chance(0.05)) await task.cancel();
    const { approvals = [] } = await outcome;
    // Half of the time they write something else instead of answering.
    if ((await task.status()) !== "paused" || dice.chance(0.5)) continue;
    await (approvals.length > 0 ? decide(task, approvals, dice) : task.answer("yes")).catch(() => {});
  }
}

it.each(MODELS.flatMap((options, index) => [false, true].map((streamed) => ({ options, index, streamed }))))(
  "no request is refused, whatever happens ($options.llm $options.toolFormat, streamed: $streamed)",
  { timeout: 120_000 },
  async ({ options, index, streamed }) => {
    const dice = new Dice(1_000 + index * 2 + Number(streamed));
    const providers = new StrictProviders(oddModel(dice));
    providers.keeps = false;
    const data = await mkdtemp(join(tmpdir(), "rules-"));
    try {
      for (const goal of [250, 500, 750]) {
        const swarm = swarmOf(providers, options, streamed);
        const mailroom = await Mailroom.open({ swarm, data, durability: "fast", onProblem: () => {} });
        const enough = (): boolean => providers.count >= goal;
        const people = Array.from({ length: 8 }, (_, at) =>
          person(mailroom.user(`user${at}`), dice, enough).catch(() => {}),
        );
        await Promise.race(people);
        // The process dies in the middle of the others' turns.
        await mailroom.close({ grace: 0 });
        await Promise.all(people);
      }
    } finally {
      await rm(data, { recursive: true, force: true });
    }
    expect([...new Set(providers.refused)]).toEqual([]);
    expect(providers.count).toBeGreaterThanOrEqual(750);
  },
);

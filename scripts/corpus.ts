/**
 * Writes the journals of `test/corpus/v<n>`: every later version must load what this one writes.
 *
 *   npx tsx scripts/corpus.ts            writes missing files
 *   npx tsx scripts/corpus.ts --rewrite  rewrites all files; never for a released version
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { JOURNAL_VERSION } from "../src/engine/task/entries.js";
import { CORPUS, summaryOf } from "../test/corpus/journals.js";
import {
  acknowledge,
  act,
  ask,
  broadcast,
  complete,
  help,
  ignore,
  interrupt,
  respond,
  wait,
} from "../test/kit/answers.js";
import { action, agent, office, swarm } from "../test/kit/swarms.js";
import { TestTask } from "../test/kit/test-task.js";

const tools = { actions: [action("look_up"), action("approve")], breakpoints: ["approve"] };

const SCENARIOS: Readonly<Record<string, () => TestTask>> = {
  /** Requests, an action, a wait, the end, and another round. */
  rounds() {
    const task = new TestTask(office(tools), { body: "What is the weather like?" });
    task.turn("boss", ask("ann", "the weather, please"), ask("bob", "and the news"), wait("both"));
    task.turn("ann", act("look_up", { city: "Bern" }));
    task.finish("ann", "sunny");
    task.turn("ann", respond("boss", "it is sunny"));
    task.turn("boss", wait());
    task.turn("bob", respond("boss", "no news"));
    task.turn("boss", complete("Sunny, and no news."));
    task.post("And tomorrow?", { maxSteps: 5 });
    task.turn("boss", help());
    task.turn("boss", complete("I do not know."));
    return task;
  },
  /** Breakpoint calls: answered once, then not. */
  breakpoints() {
    const task = new TestTask(office(tools), { body: "Buy it." });
    task.turn("boss", act("look_up"), act("approve", { price: 3 }));
    task.finish("boss", "it costs 3");
    task.do({ type: "answer_breakpoint", results: { content: "yes" } });
    task.turn("boss", ask("ann", "buy it"), wait());
    task.turn("ann", act("approve", { price: 3 }));
    task.post("Leave it.");
    return task;
  },
  /** A second person answers for the owner. */
  approvers() {
    const task = new TestTask(office(tools), { body: "Buy it." });
    task.do({ type: "name_approvers", approvers: ["user:bo", "admin"], by: { role: "user", id: "ulla" } });
    task.turn("boss", act("approve", { price: 3 }));
    const by = { role: "user", id: "bo" } as const;
    task.do({ type: "answer_breakpoint", results: { content: "yes" }, by });
    task.turn("boss", complete("bought"));
    return task;
  },
  /** Model calls that are counted before they start, a pause at a limit, and limits of the owner and of an admin. */
  budgets() {
    const task = new TestTask(office(tools), { body: "Think.", budget: { maxCalls: 2 } });
    const call = { calls: 1, inputTokens: 100, cost: 0.01, model: "some/model", estimated: true } as const;
    const begin = () => task.do({ type: "count_usage", agent: "boss", usage: call, begun: true });
    begin();
    const usage = { calls: 1, inputTokens: 90, outputTokens: 10, cost: 0.02, model: "some/model" };
    task.do({
      type: "answer",
      agent: "boss",
      took: [task.head("boss")],
      answer: { calls: [{ ...ask("ann", "help"), id: "call-1" }], usage },
      counted: call,
    });
    task.turn("ann", respond("boss", "here"));
    begin();
    task.do({
      type: "hold_turn",
      agent: "boss",
      took: [task.head("boss")],
      reason: "budget",
      message: "the limit is reached",
      usage: call,
      counted: call,
    });
    task.do({ type: "set_budget", limits: { maxCalls: 9, maxCost: 1 }, by: { role: "user", id: "ulla" } });
    const admin = { role: "admin", id: "root" } as const;
    task.do({
      type: "set_budget",
      limits: { maxTokens: null },
      agents: { boss: { maxCalls: 5 } },
      by: admin,
      admin: true,
    });
    task.do({ type: "retry" });
    task.do({
      type: "count_usage",
      agent: "boss",
      usage: { calls: 1, failures: [{ model: "m", problem: "cut" }] },
    });
    task.turn("boss", complete("done"));
    return task;
  },
  /** Actions that run together, and calls that wait for approval: approved with changes, rejected, expired. */
  approvals() {
    const pay = action("pay", undefined, { approval: true, approvalTimeout: 60_000 });
    const task = new TestTask(office({ ...tools, actions: [...tools.actions, pay] }), { body: "Pay." });
    const boss = () => task.agent("boss").turn?.asked.map(({ call }) => call.id) ?? [];
    task.turn("boss", act("look_up"), act("pay", { euros: 9 }), act("pay", { euros: 5 }), ask("ann", "paid"));
    const [first = "", second = ""] = boss();
    const by = { role: "user", id: "ulla" } as const;
    const args = { euros: 1 };
    task.do({ type: "answer_approvals", decisions: [{ callId: first, decision: "approve", args }], by });
    task.finish("boss", "paid 1", true, "pay");
    task.finish("boss", "a price", true, "look_up");
    const decisions = [{ callId: second, decision: "reject", reason: "twice" }] as const;
    task.do({ type: "answer_approvals", decisions, by });
    task.turn("boss", act("pay", { euros: 2 }));
    task.at += 60_000;
    task.do({ type: "approval_time" });
    task.turn("boss", act("pay", { euros: 3 }), act("look_up"));
    return task;
  },
  /** The process closes in the middle of a turn and opens again. */
  parked() {
    const task = new TestTask(office(tools), { body: "Wait." });
    const took = [task.head("boss")];
    task.do({ type: "park", agent: "boss", took });
    task.do({ type: "recover", agent: "boss", took });
    task.turn("boss", complete("done"));
    return task;
  },
  /** An agent fails, is recovered too often, and fails the task; the user retries. */
  failures() {
    const task = new TestTask(office(tools), { body: "Try." });
    task.turn("boss", ask("ann", "try"), ask("nobody", "try"), act("unknown"));
    task.failTurn("ann", "out of order");
    for (const _ of [1, 2, 3]) task.do({ type: "recover", agent: "boss", took: [task.head("boss")] });
    task.post("Try again.");
    return task;
  },
  /** Cancelled while an action runs, and resumed. */
  cancelled() {
    const task = new TestTask(office(tools), { body: "Look around." });
    task.turn("boss", ask("bob", "look around"), act("look_up"), act("look_up"));
    task.do({ type: "restart_action", agent: "boss", callId: runningCall(task, "boss") });
    task.cancel();
    task.do({
      type: "finish_action",
      agent: "boss",
      callId: runningCall(task, "boss"),
      ok: false,
      content: "outcome unknown: the task was cancelled while the action ran",
      unknown: true,
    });
    task.post("Once more.");
    return task;
  },
  /** The step limit and the last turn. */
  steps() {
    const task = new TestTask(office(), { body: "Talk.", maxSteps: 2 });
    task.turn("boss", ask("ann", "one"), wait());
    task.turn("ann", respond("boss", "two"));
    task.turn("boss", ask("ann", "three"));
    return task;
  },
  /** All agents are idle. */
  idle() {
    const task = new TestTask(office(), { body: "Wait." });
    task.turn("boss", broadcast("hello"));
    task.turn("ann", acknowledge());
    task.turn("bob", ignore());
    task.turn("boss", ask("bob", "anything?"), interrupt("bob", "stop"));
    task.say("bob", "I have stopped.");
    task.turn("bob", respond("boss", "nothing"));
    task.turn("boss", wait());
    task.turn("boss", broadcast("good night"));
    for (const name of ["ann", "bob"]) task.turn(name, acknowledge());
    return task;
  },
  /** Agents in other processes and other swarms. */
  elsewhere() {
    const task = new TestTask(
      swarm([
        agent("boss", {
          targets: ["far", "ann@north", "eve@south"],
          supervisor: true,
          entrypoint: true,
          interswarm: true,
        }),
        agent("far", { targets: ["boss"], remote: true }),
      ]),
      { body: "Ask everybody." },
    );
    task.turn("boss", ask("far", "you?"), ask("ann@north", "you?"), ask("eve@south", "you?"), wait());
    task.do({ type: "lend", agent: "far" });
    task.do({
      type: "release",
      agent: "far",
      messageId: messageAt(task, "far"),
      attempt: 1,
    });
    task.do({ type: "lend", agent: "far" });
    task.do({
      type: "answer_lent",
      agent: "far",
      messageId: messageAt(task, "far"),
      attempt: 2,
      answer: {
        calls: [{ id: "far-1", name: "send_response", args: { target: "boss", subject: "me", body: "yes" } }],
      },
    });
    const [north, south] = task.state.outbound;
    if (north === undefined || south === undefined) throw new Error("nothing is on its way to other swarms");
    task.do({
      type: "carried",
      messageId: north.message.id,
      swarm: "north",
      ok: true,
      contributors: ["swarm:north@north"],
    });
    task.do({ type: "carried", messageId: south.message.id, swarm: "south", ok: false, reason: "refused" });
    task.do({
      type: "copy_events",
      swarm: "north",
      events: [{ id: "3", event: "agent_input", data: { task_id: task.state.taskId, agent: "ann" } }],
    });
    task.post("news from elsewhere", {
      sender: { address_type: "agent", address: "ann@north" },
      contributors: ["user:nora@north"],
    });
    return task;
  },
  /** Compacted memory, and a swarm that changes under a running task. */
  memory() {
    const task = new TestTask(office(tools), { body: "Remember this." });
    task.turn("boss", ask("ann", "remember"), ask("bob", "remember"), wait());
    task.turn("ann", respond("boss", "done"));
    task.answer("boss", {
      text: "I am waiting.",
      reasoning: "One has answered.",
      calls: [{ id: "boss-wait", name: "await_message", args: {} }],
      usage: { inputTokens: 10, outputTokens: 2, model: "none" },
      compaction: { upTo: task.state.number - 1, summary: "ann remembers" },
    });
    task.redefine(
      swarm([agent("boss", { targets: ["ann"], supervisor: true, entrypoint: true }), agent("ann")], {
        hash: "two",
      }),
    );
    return task;
  },
  /** Agents in manual mode. */
  manual() {
    const task = new TestTask(office(), { body: "Play.", type: "broadcast", manual: true });
    task.manualStep("ann", "your move", { type: "broadcast", targets: [] });
    const { mailbox } = task.agent("ann");
    task.do({
      type: "answer",
      agent: "ann",
      took: mailbox.map(({ number }) => number),
      answer: { text: "e4", calls: [] },
    });
    task.manualStep("bob", "", { type: "response", targets: ["ann"] });
    return task;
  },
};

function runningCall(task: TestTask, name: string): string {
  const call = task.agent(name).turn?.running[0]?.call;
  if (call === undefined) throw new Error(`agent '${name}' runs no action`);
  return call.id;
}

function messageAt(task: TestTask, name: string): string {
  const [head] = task.agent(name).mailbox;
  if (head === undefined) throw new Error(`no mail waits for agent '${name}'`);
  return head.message.id;
}

const folder = join(CORPUS, `v${JOURNAL_VERSION}`);
const expectedFile = join(folder, "expected.json");
const rewrite = process.argv.includes("--rewrite");
mkdirSync(folder, { recursive: true });
const expected: Record<string, unknown> =
  existsSync(expectedFile) && !rewrite ? JSON.parse(readFileSync(expectedFile, "utf8")) : {};
for (const [name, tell] of Object.entries(SCENARIOS)) {
  const file = join(folder, `${name}.jsonl`);
  if (existsSync(file) && !rewrite) continue;
  const task = tell();
  writeFileSync(file, task.entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  expected[`${name}.jsonl`] = summaryOf(task.state);
  console.log(`test/corpus/v${JOURNAL_VERSION}/${name}.jsonl: ${task.entries.length} entries`);
}
writeFileSync(expectedFile, `${JSON.stringify(expected, null, 2)}\n`);

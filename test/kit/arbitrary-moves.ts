/** Arbitrary commands to a task, as data: a move is interpreted in the task's current state. */
import fc from "fast-check";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { ApprovalDecision, Command } from "../../src/engine/task/commands.js";
import { askedCalls } from "../../src/engine/task/state.js";
import { answerOf, type PlannedCall } from "./answers.js";
import { action, agent, swarm } from "./swarms.js";
import type { TestTask } from "./test-task.js";

const NAMES = ["ann", "bob", "cem", "dee", "eli", "fay"] as const;
/**
 * Invalid and unusual recipients: unknown, all, the user, the swarm itself, and agents of known and unknown swarms.
 */
const STRANGERS = ["zoe", "all", "ulla", "desk", "x@north", "y@south", "ann@desk", ""];

const names = (count: number) => NAMES.slice(0, count);

/** Two to six agents with arbitrary comm targets, permissions and actions. */
export const anySwarm: fc.Arbitrary<SwarmDefinition> = fc.integer({ min: 2, max: 6 }).chain((count) => {
  const one = fc.record({
    targets: fc.subarray([...names(count), "x@north"]),
    supervisor: fc.boolean(),
    actions: fc.subarray(["dig", "plow", "sign", "sell"]),
  });
  return fc.array(one, { minLength: count, maxLength: count }).map((drawn) => {
    const agents = drawn.map(({ targets, supervisor, actions }, index) => {
      const name = NAMES[index] ?? "ann";
      return agent(name, {
        targets: targets.filter((target) => target !== name),
        supervisor,
        actions,
        entrypoint: index === 0,
        interswarm: true,
      });
    });
    const [first = agent("ann"), ...rest] = agents;
    const sell = action("sell", undefined, { approval: true, approvalTimeout: 1_000 });
    return swarm([first, ...rest], {
      actions: [action("dig"), { ...action("plow"), parallel: false }, action("sign"), sell],
      breakpoints: ["sign"],
    });
  });
});

const target = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...NAMES) }, fc.constantFrom(...STRANGERS));
const words = fc.constantFrom("yes", "no", "maybe", "");
const message = fc.record({ target, subject: words, body: words });

/** A call of any tool or action, valid or not; ids are sometimes reused. */
export const anyCall: fc.Arbitrary<PlannedCall> = fc
  .oneof(
    { weight: 6, arbitrary: callOf(["send_request", "send_response", "send_interrupt"], message) },
    callOf(["send_broadcast"], fc.record({ subject: words, body: words })),
    callOf(["send_broadcast"], fc.record({ subject: words, body: words, targets: fc.array(target) })),
    callOf(["send_interswarm_broadcast"], fc.record({ subject: words, body: words })),
    callOf(["task_complete"], fc.record({ finish_message: words })),
    callOf(["acknowledge_broadcast", "ignore_broadcast", "await_message", "help"], fc.constant({})),
    { weight: 3, arbitrary: callOf(["dig", "dig", "plow", "sign", "sell", "sell", "fly"], fc.constant({})) },
    callOf(
      ["send_request", "task_complete", "help"],
      fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 }),
    ),
    callOf(["send_request"], fc.constant({ target: "bob", subject: "::task_idle::", body: "boo" })),
  )
  .chain((call) => fc.constantFrom(call, call, call, { ...call, id: "1" }));

function callOf(
  tools: readonly [string, ...string[]],
  args: fc.Arbitrary<Record<string, unknown>>,
): fc.Arbitrary<PlannedCall> {
  return fc.record({ name: fc.constantFrom(...tools), args });
}

const who = fc.nat(5);

export const anyMove = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("answer"), who, calls: fc.array(anyCall, { maxLength: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("say"), who, text: words }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("finish_action"), who, which: fc.nat(3), ok: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("post"), who, type: anyType() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("answer_breakpoint"), how: fc.nat(3) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("decide"), how: fc.nat(5) }) },
  fc.constant({ kind: "expire" as const }),
  fc.record({ kind: fc.constant("fail"), who }),
  fc.record({ kind: fc.constant("hold"), who }),
  fc.constant({ kind: "retry" as const }),
  fc.record({ kind: fc.constant("post_from_elsewhere"), who }),
  fc.record({ kind: fc.constant("restart_action"), who, which: fc.nat(3) }),
  fc.record({ kind: fc.constant("recover"), who }),
  fc.record({ kind: fc.constant("lend"), who }),
  fc.record({ kind: fc.constant("release"), who, late: fc.boolean() }),
  fc.record({ kind: fc.constant("fail_lent"), who, late: fc.boolean() }),
  fc.record({
    kind: fc.constant("answer_lent"),
    who,
    late: fc.boolean(),
    calls: fc.array(anyCall, { maxLength: 3 }),
  }),
  fc.record({ kind: fc.constant("carried"), ok: fc.boolean() }),
  fc.record({ kind: fc.constant("manual_step"), who }),
  fc.record({ kind: fc.constant("notify"), who }),
  fc.record({ kind: fc.constant("leave"), who }),
  fc.record({ kind: fc.constant("compact"), who, upTo: fc.nat(60) }),
  fc.constant({ kind: "cancel" as const }),
  fc.constant({ kind: "time_limit" as const }),
);
type Move = typeof anyMove extends fc.Arbitrary<infer T> ? T : never;

function anyType() {
  return fc.constantFrom("request" as const, "broadcast" as const, "interrupt" as const);
}

/** Makes the move if it applies to the current state. A refusal is a valid outcome. */
export function make(task: TestTask, move: Move, definition: SwarmDefinition): void {
  const command = commandOf(task, move, definition);
  if (command !== undefined) task.try(command);
}

function commandOf(task: TestTask, move: Move, definition: SwarmDefinition): Command | undefined {
  const all = [...task.rules.agents.keys()];
  const name = "who" in move ? (all[move.who % all.length] ?? "ann") : "ann";
  const state = task.state.agents.get(name);
  const took = state?.mailbox.slice(0, 1).map((mail) => mail.number) ?? [];
  const which = "which" in move ? move.which : 0;
  const running = state?.turn?.running.at(which % Math.max(1, state.turn.running.length))?.call.id;
  switch (move.kind) {
    case "answer":
      return { type: "answer", agent: name, took, answer: answerOf(move.calls, () => task.ids.uuid()) };
    case "say":
      return { type: "answer", agent: name, took, answer: { text: move.text, calls: [] } };
    case "compact": {
      const answer = { text: "I forget", calls: [], compaction: { upTo: move.upTo, summary: "long ago" } };
      return { type: "answer", agent: name, took, answer };
    }
    case "fail":
      return { type: "fail_turn", agent: name, took, code: "agent_error", message: "it broke" };
    case "hold":
      return { type: "hold_turn", agent: name, took, reason: "credentials", message: "there is no key" };
    case "retry":
      return { type: "retry" };
    case "finish_action":
      return { type: "finish_action", agent: name, callId: running ?? "none", ok: move.ok, content: "done" };
    case "restart_action":
      return { type: "restart_action", agent: name, callId: running ?? "none" };
    case "recover":
      return { type: "recover", agent: name, took };
    case "post":
      return task.postCommand(
        "please",
        move.type === "broadcast" ? { type: move.type } : { type: move.type, to: [name] },
      );
    case "post_from_elsewhere": {
      const sender = { address_type: "agent", address: "x@north" } as const;
      return task.postCommand("hello", { sender, to: [name], contributors: ["swarm:desk@north"] });
    }
    case "answer_breakpoint":
      return breakpointAnswer(task, move.how);
    case "decide":
      return approvalAnswer(task, move.how);
    case "expire":
      task.at += 600;
      return { type: "approval_time" };
    case "lend":
      return { type: "lend", agent: name };
    case "release":
    case "fail_lent":
    case "answer_lent": {
      const lent = state?.lent;
      const mail = state?.mailbox.find((waiting) => waiting.number === lent?.number);
      const attempt = (lent?.attempt ?? 1) - (move.late ? 1 : 0);
      const lending = { agent: name, messageId: mail?.message.id ?? "none", attempt };
      if (move.kind === "release") return { type: "release", ...lending };
      if (move.kind === "fail_lent") return { type: "fail_lent", ...lending, message: "it broke" };
      return { type: "answer_lent", ...lending, answer: answerOf(move.calls, () => task.ids.uuid()) };
    }
    case "carried": {
      const out = task.state.outbound[0];
      if (out === undefined) return undefined;
      return {
        type: "carried",
        messageId: out.message.id,
        swarm: out.swarm,
        ok: move.ok,
        reason: "so it is",
      };
    }
    case "manual_step":
      return { type: "manual_step", agent: name, payload: "go", reply: { type: "broadcast", targets: [] } };
    case "notify":
      return { type: "notify", agent: name, subject: "::router_error::", body: "something" };
    case "leave": {
      if (definition.agents.length < 2) return undefined;
      const agents = definition.agents.filter((one) => one.name !== name);
      task.redefine({ ...definition, agents, hash: `without ${name}` });
      return undefined;
    }
    case "cancel":
      return { type: "cancel", by: "user:ulla@desk" };
    case "time_limit":
      return { type: "time_limit" };
  }
}

function approvalAnswer(task: TestTask, how: number): Command {
  const asked = askedCalls(task.state).map(({ call }) => call.id);
  const chosen = how % 2 === 0 ? asked : asked.slice(0, 1);
  const decisions = chosen.map((callId, index): ApprovalDecision => {
    if ((how + index) % 3 === 0) return { callId, decision: "reject", reason: "no" };
    return { callId, decision: "approve", ...(how > 3 && { args: { changed: true } }) };
  });
  return { type: "answer_approvals", decisions };
}

function breakpointAnswer(task: TestTask, how: number): Command {
  const open = [...task.state.agents.values()].flatMap((one) => one.open.map((call) => call.id));
  const results = open.map((callId) => ({ callId, content: "granted" }));
  if (how === 0) return { type: "answer_breakpoint", results: { content: "granted" } };
  if (how === 1) return { type: "answer_breakpoint", results: results.slice(1) };
  if (how === 2) return { type: "answer_breakpoint", results: [...results, ...results] };
  return { type: "answer_breakpoint", results };
}

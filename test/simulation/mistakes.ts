/** Plausible mistakes, as changes of the sources. */
import type { Mistake } from "./mutants.js";

export interface Planted {
  readonly name: string;
  readonly mistakes: readonly Mistake[];
  /** Seeds within which it must be found. */
  readonly within?: number;
}

const KERNEL = "journal/kernel.ts";
const ROLLBACK = "journal/rollback.ts";
const ACTION_RUNNER = "engine/runtime/action-runner.ts";
const WAITERS = "engine/runtime/waiters.ts";

export const OF_THE_KERNEL: readonly Planted[] = [
  {
    name: "results of actions are lost when a task is reloaded",
    mistakes: [
      {
        file: ACTION_RUNNER,
        right: "const known = this.#executions.get(order.key);\n      if (known !== undefined) {",
        wrong: "const known = undefined;\n      if (known !== undefined) {",
      },
    ],
  },
  {
    name: "after a refused commit the journal is read while earlier units are still pending",
    within: 2_000,
    mistakes: [
      {
        file: ROLLBACK,
        right: "if (live.units.length === 0 && live.locks === 0) this.readAgain(live);",
        wrong: "if (live.locks === 0) this.readAgain(live);",
      },
    ],
  },
  {
    name: "a refusal is returned before the state that it depends on is durable",
    mistakes: [
      {
        file: KERNEL,
        right: "if (last === undefined) knowledge.tell();",
        wrong: "if (true) knowledge.tell();",
      },
    ],
  },
  {
    name: "a cancellation releases waiters whose message was decided after it",
    mistakes: [
      { file: WAITERS, right: "if (start < number) this.#take(start);", wrong: "this.#take(start);" },
      { file: WAITERS, right: "if (start > number) continue;", wrong: "" },
    ],
  },
  {
    name: "actions that a recovery starts count as left from before the crash",
    mistakes: [
      {
        file: ACTION_RUNNER,
        right: "for (const order of runningActions(live.state)) {",
        wrong:
          "for (const { agent: name } of runningActions(live.state)) for (const order of runningActions(live.state).filter(({ agent }) => agent === name)) {",
      },
    ],
    within: 1_000,
  },
  {
    name: "a call whose arguments were not checked runs without approval",
    mistakes: [
      {
        file: "engine/task/decide/turn.ts",
        right: 'if ("approval" in one && !one.approval) free.add(one.index);',
        wrong: "free.add(one.index);",
      },
    ],
  },
  {
    name: "the end of one action ends the others of its answer",
    mistakes: [
      {
        file: "engine/task/evolve.ts",
        right: "turn.running = turn.running.filter(({ call }) => call.id !== entry.call);",
        wrong: "turn.running = [];",
      },
    ],
  },
  {
    name: "an action of a cancelled round starts after the task was resumed",
    mistakes: [
      {
        file: ACTION_RUNNER,
        right: 'if (state.stoppedAt > order.number) return "the task was ended";',
        wrong: "",
      },
    ],
    within: 1_000,
  },
  {
    name: "commands of a reload are kept and decided twice",
    mistakes: [
      {
        file: KERNEL,
        right: "if (handling.own === true && live.rollBack !== undefined) return;",
        wrong: "",
      },
      {
        file: ROLLBACK,
        right: "if (handling !== unit.handling && handling.own !== true) again.push([command, handling]);",
        wrong: "if (handling !== unit.handling) again.push([command, handling]);",
      },
      {
        file: ROLLBACK,
        right: "if (knowledge.handling.own !== true) again.push([knowledge.command, knowledge.handling]);",
        wrong: "again.push([knowledge.command, knowledge.handling]);",
      },
    ],
    within: 1_000,
  },
  {
    name: "a failed read after a refused commit leaves a running task out of memory",
    mistakes: [
      {
        file: ROLLBACK,
        right: "this.#parts.clock.after(READ_AGAIN_AFTER, () => this.#readNow(live));",
        wrong: "",
      },
    ],
  },
];

export const OF_THE_SHELL: readonly Planted[] = [
  {
    name: "a message is acknowledged when it is decided",
    mistakes: [
      {
        file: KERNEL,
        right: "handling.decided?.(unit);",
        wrong: "handling.decided?.(unit); handling.done?.(unit);",
      },
    ],
  },
  {
    name: "an action starts when it is decided",
    mistakes: [
      {
        file: KERNEL,
        right: "    decided(live, unit);",
        wrong:
          '    decided(live, unit);\n    for (const one of this.#parts.reactors) if (one.name === "actions") one.react(live, unit);',
      },
    ],
  },
  {
    name: "an ending also releases waiters whose message no agent has taken",
    mistakes: [
      {
        file: WAITERS,
        right: 'case "completed":\n      case "failed":\n        break;',
        wrong:
          'case "completed":\n      case "failed":\n        this.#takeAllBefore(number);\n        break;',
      },
    ],
  },
  {
    name: "an agent is free before its answer is decided, and starts during a read",
    mistakes: [
      {
        file: "engine/runtime/turns.ts",
        right: "live.gone || live.held || !this.#parts.isOpen()",
        wrong: "live.gone || !this.#parts.isOpen()",
      },
      {
        file: "engine/runtime/turns.ts",
        right: "this.#parts.kernel.apply(live, command, new TurnHandling(this, live, turn, durable));",
        wrong:
          "this.#free(live, turn.agent);\n      this.#parts.kernel.apply(live, command, new TurnHandling(this, live, turn, durable));",
      },
    ],
  },
  {
    name: "idempotency keys are the call ids of agents",
    mistakes: [
      {
        file: "engine/task/aggregate.ts",
        right: "call, attempt, key: `",
        wrong: "call, attempt, key: call.id || `",
      },
    ],
  },
  {
    name: "units that the store could not write temporarily are dropped",
    mistakes: [
      {
        file: "journal/writer.ts",
        right: "this.#retry(units, parcel, group, result.cause);",
        wrong:
          'this.#committed(units, parcel, { kind: "committed", outcomes: group.batches.map(({ appends }) => appends.map(() => this.#position)) });',
      },
    ],
  },
];

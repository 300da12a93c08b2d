/** Mistakes that looked right to somebody once, as changes of the sources. */
import type { Mistake } from "./mutants.js";

export interface Planted {
  readonly name: string;
  readonly mistakes: readonly Mistake[];
  /** Seeds within which it must be found. */
  readonly within?: number;
}

const KERNEL = "journal/kernel.ts";
const EFFECTS = "engine/runtime/effects.ts";
const WAITERS = "engine/runtime/waiters.ts";

export const OF_THE_KERNEL: readonly Planted[] = [
  {
    name: "results of actions are forgotten when a task is read again",
    mistakes: [
      {
        file: EFFECTS,
        right: "const known = this.#effects.get(order.key);\n      if (known !== undefined) {",
        wrong: "const known = undefined;\n      if (known !== undefined) {",
      },
    ],
  },
  {
    name: "after a refusal the journal is read while earlier units are still on their way",
    mistakes: [
      {
        file: KERNEL,
        right: "if (live.units.length === 0 && live.locks === 0) this.#readAgain(live);",
        wrong: "if (live.locks === 0) this.#readAgain(live);",
      },
    ],
  },
  {
    name: "a refusal is told before what it rests on is durable",
    mistakes: [
      {
        file: KERNEL,
        right: "if (last === undefined) knowledge.tell();",
        wrong: "if (true) knowledge.tell();",
      },
    ],
  },
  {
    name: "a cancellation releases those whose message was decided after it",
    mistakes: [
      { file: WAITERS, right: "if (start < number) this.#take(start);", wrong: "this.#take(start);" },
      { file: WAITERS, right: "if (start > number) continue;", wrong: "" },
    ],
  },
  {
    name: "an action of a cancelled round begins when the task has gone on",
    mistakes: [
      { file: EFFECTS, right: 'if (state.stoppedAt > order.number) return "the task was ended";', wrong: "" },
    ],
    within: 1_000,
  },
  {
    name: "commands of taking up are kept and decided a second time",
    mistakes: [
      {
        file: KERNEL,
        right: "if (handling.own === true && live.rollBack !== undefined) return;",
        wrong: "",
      },
      {
        file: KERNEL,
        right: "if (handling !== unit.handling && handling.own !== true) again.push([command, handling]);",
        wrong: "if (handling !== unit.handling) again.push([command, handling]);",
      },
      {
        file: KERNEL,
        right: "if (knowledge.handling.own !== true) again.push([knowledge.command, knowledge.handling]);",
        wrong: "again.push([knowledge.command, knowledge.handling]);",
      },
    ],
    within: 1_000,
  },
  {
    name: "a failed read after a refusal leaves a running task out of memory",
    mistakes: [
      {
        file: KERNEL,
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
    name: "an action begins when it is decided",
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
    name: "an ending releases also those whose message nobody has taken",
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
    name: "an agent is free before its answer is decided, and starts while somebody reads",
    mistakes: [
      {
        file: "engine/runtime/turns.ts",
        right: "live.gone || live.held || !this.#parts.isOpen()",
        wrong: "live.gone || !this.#parts.isOpen()",
      },
      {
        file: "engine/runtime/turns.ts",
        right: "const { agent } = turn;\n    this.#parts.kernel.apply(live, command, {",
        wrong:
          "const { agent } = turn;\n    this.#free(live, agent);\n    this.#parts.kernel.apply(live, command, {",
      },
    ],
  },
  {
    name: "idempotency keys are the ids that agents give to their calls",
    mistakes: [
      {
        file: "engine/task.ts",
        right: "call, attempt, key: `",
        wrong: "call, attempt, key: call.id || `",
      },
    ],
  },
  {
    name: "what the store could not take for a moment is dropped",
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

/**
 * Checks the engine's laws for any swarm and any sequence of commands. `TestTask` checks after every command that the
 * journal folds to the same state, also from a snapshot; that mailboxes are in order; that only comm targets receive
 * mail; that no message is lost or taken twice; that every call has one result; that rounds end once; that a refusal
 * changes nothing; and that emitted messages are valid against the published schemas.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerOf, type PlannedCall } from "../../../test/kit/answers.js";
import { anyCall, anyMove, anySwarm, make } from "../../../test/kit/arbitrary-moves.js";
import { TestTask } from "../../../test/kit/test-task.js";

/** A factor for long runs: `PROPERTY_RUNS=50 npx vitest run task.property`. */
const TIMES = Number(process.env.PROPERTY_RUNS ?? 1);

describe("the engine", () => {
  it("[MAIL-TOOL-09, MAIL-CONF-01] keeps its laws in any swarm under any sequence of commands", () => {
    fc.assert(
      fc.property(
        anySwarm,
        fc.record({
          maxSteps: fc.option(fc.integer({ min: 0, max: 8 }), { nil: null }),
          type: fc.constantFrom("request" as const, "broadcast" as const),
          manual: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn === 0),
          limits: fc.record({
            mailbox: fc.constantFrom(3, 10_000),
            taskTimeout: fc.constantFrom(0, 1_000),
            repetition: fc.constantFrom(0, 3),
          }),
        }),
        fc.array(anyMove, { minLength: 1, maxLength: 40 }),
        (definition, options, moves) => {
          const task = new TestTask(definition, options);
          for (const move of moves) make(task, move, definition);
        },
      ),
      { numRuns: 200 * TIMES },
    );
  });

  /** Calls that make the agent continue without mail: the only ones that the step limit does not count. */
  const PROLONGS = new Set(["dig", "plow", "sell", "help"]);
  const PROLONGATIONS = 6;

  it("a task with a step limit ends for any answers of its agents", () => {
    fc.assert(
      fc.property(
        anySwarm,
        fc.integer({ min: 0, max: 5 }),
        fc.array(fc.array(anyCall, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat(5), { minLength: 1, maxLength: 12 }),
        (definition, maxSteps, answers, order) => {
          const task = new TestTask(definition, { maxSteps, limits: { repetition: 0 } });
          const agents = definition.agents.length;
          const others = maxSteps * agents + PROLONGATIONS + 2;
          const bound = 6 * (others + agents);
          let prolongations = 0;
          let turns = 0;
          for (; task.state.status === "running" && turns <= bound; turns++) {
            const name = nextToRun(task, order[turns % order.length] ?? 0);
            if (name === undefined) break;
            let calls: readonly PlannedCall[] = answers[turns % answers.length] ?? [];
            if (calls.some((call) => PROLONGS.has(call.name)) && ++prolongations > PROLONGATIONS) {
              calls = [{ name: "send_request", args: { target: "bob", subject: `${turns}`, body: "" } }];
            }
            take(task, name, calls);
          }
          expect(turns).toBeLessThanOrEqual(bound);
          // It has ended, or waits for a user or another swarm.
          const waits = task.state.outbound.length > 0 || task.state.outstanding.some(({ remote }) => remote);
          expect(task.state.status !== "running" || waits).toBe(true);
        },
      ),
      { numRuns: 150 * TIMES },
    );
  });

  it("the same state, command and decision context always give the same entries", () => {
    fc.assert(
      fc.property(anySwarm, fc.array(anyMove, { maxLength: 25 }), (definition, moves) => {
        const [one, other] = [new TestTask(definition), new TestTask(definition)];
        for (const move of moves) {
          make(one, move, definition);
          make(other, move, definition);
        }
        expect(one.entries).toEqual(other.entries);
      }),
      { numRuns: 40 * TIMES },
    );
  });
});

/** One of the agents that can run now. At the step limit only the entrypoint can, with its last notice. */
function nextToRun(task: TestTask, choice: number): string | undefined {
  const { lastTurn, entrypoint, agents } = task.state;
  if (lastTurn !== undefined) return entrypoint;
  const ready = [...agents].filter(([, { mailbox, turn }]) => mailbox.length > 0 && turn === undefined);
  return ready[choice % ready.length]?.[0];
}

function take(task: TestTask, name: string, calls: readonly PlannedCall[]): void {
  const took = [task.state.lastTurn ?? task.head(name)];
  task.do({ type: "answer", agent: name, took, answer: answerOf(calls, () => task.ids.uuid()) });
  while ((task.agent(name).turn?.running.length ?? 0) > 0) task.finish(name);
}

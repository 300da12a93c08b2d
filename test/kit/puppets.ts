/** Agents on strings: each turn waits until the test says what the agent answers. */
import type { AgentAnswer, AgentFunction, Turn } from "../../src/engine/agent.js";
import { withResolvers } from "../../src/engine/runtime/waiters.js";
import { answerOf, type PlannedCall } from "./answers.js";
import { countingIds } from "./seeded.js";

export interface PuppetTurn {
  readonly turn: Turn;
  answer(...calls: readonly PlannedCall[]): void;
  say(text: string): void;
  fail(error: Error): void;
}

export class Puppets {
  readonly #ids = countingIds();
  readonly #turns = new Map<string, PuppetTurn[]>();
  readonly #takers = new Map<string, ((turn: PuppetTurn) => void)[]>();
  /** Names of the agents in the order in which their turns began. */
  readonly began: string[] = [];

  mind(name: string): AgentFunction {
    return (turn) => {
      const { promise, resolve, reject } = withResolvers<AgentAnswer>();
      this.began.push(name);
      const begun: PuppetTurn = {
        turn,
        answer: (...calls) => resolve(answerOf(calls, () => this.#ids.uuid())),
        say: (text) => resolve({ text, calls: [] }),
        fail: reject,
      };
      const taker = this.#takers.get(name)?.shift();
      if (taker !== undefined) taker(begun);
      else this.#turns.set(name, [...(this.#turns.get(name) ?? []), begun]);
      return promise;
    };
  }

  /** The agent's next turn; waits for it to begin. */
  next(name: string): Promise<PuppetTurn> {
    const begun = this.#turns.get(name)?.shift();
    if (begun !== undefined) return Promise.resolve(begun);
    return new Promise((resolve) => {
      this.#takers.set(name, [...(this.#takers.get(name) ?? []), resolve]);
    });
  }

  /** The process died: what it had asked, nobody waits for any more. */
  bury(): void {
    this.#turns.clear();
  }

  /** Turns that have begun and that no test has taken in hand. */
  begunTurns(name: string): number {
    return this.#turns.get(name)?.length ?? 0;
  }
}

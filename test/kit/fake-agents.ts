/** Fake agents: each turn waits until the test supplies the agent's answer. */

import { deferred } from "../../src/base/index.js";
import type { AgentFunction, Turn, TurnResult } from "../../src/engine/agent.js";
import { seededIds } from "../../src/testing/seeded-ids.js";
import { answerOf, type PlannedCall } from "./answers.js";

export interface FakeTurn {
  readonly turn: Turn;
  answer(...calls: readonly PlannedCall[]): void;
  say(text: string): void;
  fail(error: Error): void;
}

export class FakeAgents {
  readonly #ids = seededIds(0);
  readonly #turns = new Map<string, FakeTurn[]>();
  readonly #takers = new Map<string, ((turn: FakeTurn) => void)[]>();
  /** Names of the agents in the order of their turns. */
  readonly began: string[] = [];

  mind(name: string): AgentFunction {
    return (turn) => {
      const { promise, resolve, reject } = deferred<TurnResult>();
      this.began.push(name);
      const begun: FakeTurn = {
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

  /** Waits for the agent's next turn. */
  next(name: string): Promise<FakeTurn> {
    const begun = this.#turns.get(name)?.shift();
    if (begun !== undefined) return Promise.resolve(begun);
    return new Promise((resolve) => {
      this.#takers.set(name, [...(this.#takers.get(name) ?? []), resolve]);
    });
  }

  /** Simulates the death of the process: pending turns are dropped. */
  dropTurns(): void {
    this.#turns.clear();
  }

  /** Turns that have begun and that no test has taken. */
  begunTurns(name: string): number {
    return this.#turns.get(name)?.length ?? 0;
  }
}

/**
 * A task as of any entry, computed by the engine's own code.
 *
 * Checkpoints are spread evenly: when there are too many, every second one goes and the distance doubles. A jump
 * therefore applies a bounded share of the journal.
 */
import { type AgentState, evolve, open, type TaskState } from "../../engine/pure.js";
import type { JournalEntry } from "./journal-entry.js";

const MOST_CHECKPOINTS = 24;
const FIRST_DISTANCE = 64;

export class Travel {
  readonly #entries: JournalEntry[] = [];
  #checkpoints: { readonly number: number; readonly state: TaskState }[] = [];
  #distance = FIRST_DISTANCE;
  #newest: TaskState | undefined;

  /** The number of the last entry. */
  get last(): number {
    return this.#entries.length;
  }

  /** The state as of the last entry. It changes with the next `extend`. */
  get newest(): TaskState | undefined {
    return this.#newest;
  }

  /** Takes entries that follow on the ones that are known, beginning with number 1; others are ignored. */
  extend(entries: readonly JournalEntry[]): void {
    for (const entry of entries) {
      if (entry.n !== this.last + 1) continue;
      this.#entries.push(entry);
      this.#newest = apply(this.#newest, entry);
      if (entry.n % this.#distance === 0) this.#keep(entry.n, this.#newest);
    }
  }

  /** The state as of entry `number`; undefined before the first entry and after the last. */
  at(number: number): TaskState | undefined {
    if (number < 1 || number > this.last) return undefined;
    if (number === this.last) return this.#newest;
    const start = this.#checkpoints.findLast((checkpoint) => checkpoint.number <= number);
    let state = start === undefined ? undefined : copyOf(start.state);
    for (let at = start?.number ?? 0; at < number; at++) {
      const entry = this.#entries[at];
      if (entry !== undefined) state = apply(state, entry);
    }
    return state;
  }

  #keep(number: number, state: TaskState): void {
    this.#checkpoints.push({ number, state: copyOf(state) });
    if (this.#checkpoints.length <= MOST_CHECKPOINTS) return;
    this.#distance *= 2;
    this.#checkpoints = this.#checkpoints.filter((checkpoint) => checkpoint.number % this.#distance === 0);
  }
}

function apply(state: TaskState | undefined, entry: JournalEntry): TaskState {
  if (state === undefined) {
    if (entry.t !== "opened") throw new Error(`the journal begins with '${entry.t}'`);
    return open(entry);
  }
  evolve(state, entry);
  return state;
}

/** Copies what `evolve` writes to; messages, calls and results are shared, because nothing changes them. */
function copyOf(state: TaskState): TaskState {
  const agents = new Map<string, AgentState>();
  for (const [name, agent] of state.agents) {
    const { turn } = agent;
    agents.set(name, {
      ...agent,
      mailbox: agent.mailbox.map((item) => ({ ...item })),
      history: agent.history.slice(),
      open: agent.open.slice(),
      turn:
        turn === undefined
          ? undefined
          : {
              ...turn,
              pending: turn.pending.slice(),
              running: turn.running.slice(),
              asked: turn.asked.slice(),
              edited: turn.edited.slice(),
              errors: turn.errors.slice(),
            },
    });
  }
  return {
    ...state,
    contributors: state.contributors.slice(),
    stepped: new Set(state.stepped),
    taken: new Set(state.taken),
    recent: state.recent.slice(),
    agents,
    outstanding: state.outstanding.map((request) => ({ ...request })),
    outbound: state.outbound.slice(),
    remoteSwarms: state.remoteSwarms.slice(),
    endings: state.endings.slice(),
    replies: state.replies?.slice(),
  };
}

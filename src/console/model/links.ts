/** What belongs to an entry: its answer, the mail a turn took, the turn that made a call. */
import type { JournalEntry } from "./journal-entry.js";
import { requestIdOf } from "./mail-words.js";

export class Links {
  readonly #requests = new Map<string, number>();
  readonly #responses = new Map<string, number>();
  /** By number of a message: the turns that took it. */
  readonly #takers = new Map<number, number[]>();
  /** By agent and call: the turn, the start and the end. */
  readonly #calls = new Map<string, { turn: number; start?: number; end?: number; sent?: number }>();
  #last = 0;

  extend(entries: readonly JournalEntry[]): void {
    for (const entry of entries) {
      if (entry.n <= this.#last) continue;
      this.#last = entry.n;
      if (entry.t === "sent") {
        const id = requestIdOf(entry.message);
        if (id !== undefined) {
          const known = entry.message.msg_type === "request" ? this.#requests : this.#responses;
          if (!known.has(id)) known.set(id, entry.n);
        }
        if (entry.call !== undefined) this.#call(entry.call.agent, entry.call.id, "sent", entry.n);
      } else if (entry.t === "turn" || entry.t === "turn_failed") {
        for (const n of entry.took) this.#takers.set(n, [...(this.#takers.get(n) ?? []), entry.n]);
        if (entry.t === "turn")
          for (const call of entry.calls) this.#calls.set(`${entry.agent}\n${call.id}`, { turn: entry.n });
      } else if (entry.t === "action_started") this.#call(entry.agent, entry.call, "start", entry.n);
      else if (entry.t === "action_finished" || entry.t === "result")
        this.#call(entry.agent, entry.call, "end", entry.n);
    }
  }

  #call(agent: string, id: string, what: "start" | "end" | "sent", n: number): void {
    const known = this.#calls.get(`${agent}\n${id}`);
    if (known !== undefined) known[what] = n;
  }

  /** The other end: request and response, start and end of an action, a message and the turn that took it. */
  otherEnd(entry: JournalEntry): number | undefined {
    if (entry.t === "sent") {
      const id = requestIdOf(entry.message);
      if (id !== undefined) {
        const other = (entry.message.msg_type === "request" ? this.#responses : this.#requests).get(id);
        if (other !== undefined) return other;
      }
      return this.takers(entry.n)[0];
    }
    if (entry.t === "action_started") return this.callOf(entry.agent, entry.call)?.end;
    if (entry.t === "action_finished" || entry.t === "result") {
      const call = this.callOf(entry.agent, entry.call);
      return call?.start ?? call?.turn;
    }
    if (entry.t === "turn" || entry.t === "turn_failed") return entry.took[0];
    return undefined;
  }

  takers(n: number): readonly number[] {
    return this.#takers.get(n) ?? [];
  }

  callOf(
    agent: string,
    id: string,
  ):
    | { readonly turn: number; readonly start?: number; readonly end?: number; readonly sent?: number }
    | undefined {
    return this.#calls.get(`${agent}\n${id}`);
  }
}

/** A bounded number of things at once: in all, and for each caller, so that no caller takes every place (law 4). */
import { HttpError } from "./errors.js";

export class Places {
  readonly #what: string;
  readonly #limit: number;
  readonly #perCaller: number;
  readonly #byCaller = new Map<string, number>();
  #taken = 0;

  constructor(what: string, limit: number, perCaller: number) {
    this.#what = what;
    this.#limit = limit;
    this.#perCaller = perCaller;
  }

  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes a place; the returned function gives it back, once.
   * @throws HttpError `overloaded`
   */
  take(caller: string): () => void {
    const mine = this.#byCaller.get(caller) ?? 0;
    if (this.#taken >= this.#limit || mine >= this.#perCaller) {
      const limit = mine >= this.#perCaller ? `${this.#perCaller} per caller` : `${this.#limit} in all`;
      throw new HttpError("overloaded", `no more ${this.#what} at once (${limit}): try again later`);
    }
    this.#taken++;
    this.#byCaller.set(caller, mine + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#taken--;
      const left = (this.#byCaller.get(caller) ?? 1) - 1;
      if (left === 0) this.#byCaller.delete(caller);
      else this.#byCaller.set(caller, left);
    };
  }
}

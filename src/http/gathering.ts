/**
 * Requests that arrive in one turn of the event loop go on together, when all of them have been read. Run in a row, the
 * engine's code is still warm from the request before; in turn with that of HTTP, each task costs a ninth more.
 */
export class Gathering {
  #underWay: Promise<void> | undefined;

  /** Resolves when nobody else comes in this turn. */
  join(): Promise<void> {
    this.#underWay ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#underWay = undefined;
        resolve();
      });
    });
    return this.#underWay;
  }
}

/** Lets a few in at once; the others wait in line. */
export class Gate {
  readonly #width: number;
  readonly #line: (() => void)[] = [];
  #inside = 0;

  constructor(width: number) {
    this.#width = width;
  }

  async pass<Result>(work: () => Promise<Result>): Promise<Result> {
    // Whoever leaves hands its place on, so that nobody slips in before those who wait.
    if (this.#inside < this.#width) this.#inside++;
    else await new Promise<void>((resolve) => this.#line.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#line.shift();
      if (next === undefined) this.#inside--;
      else next();
    }
  }
}

/** Closes what was opened, in reverse order, also when opening fails half way. */
export class CloseStack {
  readonly #closers: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#closers.unshift(close);
  }

  /** @throws what the first one that failed threw, when all have had their turn */
  async close(): Promise<void> {
    const failures: { readonly error: unknown }[] = [];
    for (const close of this.#closers.splice(0)) {
      try {
        await close();
      } catch (error) {
        failures.push({ error });
      }
    }
    const [first] = failures;
    if (first !== undefined) throw first.error;
  }
}

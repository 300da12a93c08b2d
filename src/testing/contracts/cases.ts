/**
 * One promise of a contract. Any test runner can run it.
 *
 * @example
 * for (const { name, run } of storeContract(open)) it(name, run);
 */
export interface ContractCase {
  readonly name: string;
  /** Rejects when the promise is broken. */
  run(): Promise<void>;
}

/** Checks of a contract by name. */
export type Checks<Harness> = Readonly<Record<string, (harness: Harness) => Promise<void>>>;

/** Runs every check on a harness of its own. */
export function toCases<Harness>(
  checks: Checks<Harness>,
  open: () => Promise<Harness>,
  close: (harness: Harness) => Promise<void>,
): readonly ContractCase[] {
  return Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      const harness = await open();
      try {
        await check(harness);
      } finally {
        await close(harness);
      }
    },
  }));
}

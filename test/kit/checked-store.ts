/**
 * A store that watches what is written into it: every entry of every commit is held against the published schemas, and
 * every journal against the laws. It can also be told to refuse a commit.
 */
import type { Entry } from "../../src/engine/entries.js";
import type { Batch, Committed, JournalKey, Store } from "../../src/engine/ports.js";
import { Ledger, roundsEndOnce } from "./laws.js";
import { problemsOf } from "./published-schemas.js";

export class CheckedStore implements Store {
  readonly inner: Store;
  /** What was found to be wrong so far. */
  readonly problems: string[] = [];
  /** Commits that were asked for. */
  asked = 0;
  /** Commits that were asked for and are not done. */
  waiting = 0;
  /** An error refuses the commit. */
  refuse: (batch: Batch) => Error | undefined = () => undefined;
  readonly #journals = new Map<JournalKey, Entry[]>();

  constructor(inner: Store) {
    this.inner = inner;
  }

  async commit(batch: Batch): Promise<Committed> {
    this.asked++;
    const refusal = this.refuse(batch);
    if (refusal !== undefined) throw refusal;
    this.waiting++;
    try {
      const committed = await this.inner.commit(batch);
      for (const { journal, data } of batch.appends) this.#note(journal, JSON.parse(data));
      return committed;
    } finally {
      this.waiting--;
    }
  }

  read: Store["read"] = (journal, options) => this.inner.read(journal, options);
  readAll: Store["readAll"] = (after, limit) => this.inner.readAll(after, limit);
  lastNumber: Store["lastNumber"] = (journal) => this.inner.lastNumber(journal);
  readSnapshot: Store["readSnapshot"] = (journal) => this.inner.readSnapshot(journal);

  get tasks(): Store["tasks"] {
    return this.inner.tasks;
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  entriesOf(journal: JournalKey): readonly Entry[] {
    return this.#journals.get(journal) ?? [];
  }

  get journals(): ReadonlyMap<JournalKey, readonly Entry[]> {
    return this.#journals;
  }

  #note(journal: JournalKey, entries: readonly Entry[]): void {
    this.problems.push(...problemsOf(entries));
    const all = this.#journals.get(journal) ?? [];
    this.#journals.set(journal, all);
    all.push(...entries);
  }

  /** What every journal must obey, now that all is written. */
  checkLaws(): void {
    for (const entries of this.#journals.values()) {
      new Ledger().add(entries);
      roundsEndOnce(entries);
    }
  }
}

/**
 * A store that watches what is written into it: every entry of every commit is held against the published schemas, and
 * every journal against the laws. It can also be told to refuse a commit. Each process has a writer of its own.
 */
import type { Entry } from "../../src/engine/entries.js";
import type { Batch, Committed, JournalKey, Store } from "../../src/engine/ports.js";
import type { Group, GroupResult, StoreDriver } from "../../src/journal/ports.js";
import { systemClock, systemLoop } from "../../src/journal/system.js";
import { Writer } from "../../src/journal/writer.js";
import { Ledger, roundsEndOnce } from "./laws.js";
import { problemsOf } from "./published-schemas.js";

/** A store whose driver can be had, so that several writers can stand on it one after the other. */
export type DrivenStore = Store & { readonly driver: StoreDriver };

export class CheckedStore implements Store {
  readonly inner: DrivenStore;
  /** What was found to be wrong so far. */
  readonly problems: string[] = [];
  /** Groups that were asked for. */
  asked = 0;
  /** An error refuses the batch. */
  refuse: (batch: Batch) => Error | undefined = () => undefined;
  writer: Writer;
  readonly #journals = new Map<JournalKey, Entry[]>();
  readonly #torn = new Set<JournalKey>();

  constructor(inner: DrivenStore) {
    this.inner = inner;
    this.writer = this.#newWriter();
  }

  /** Units that are not durable. */
  get waiting(): number {
    return this.writer.undurable;
  }

  /** The process dies with its writer; the next one gets another. */
  restart(): void {
    this.writer.close();
    this.writer = this.#newWriter();
  }

  #newWriter(): Writer {
    const driver: StoreDriver = { write: (group, done) => this.#write(group, done) };
    return new Writer({ driver, clock: systemClock, loop: systemLoop });
  }

  #write(group: Group, done: (result: GroupResult) => void): void {
    this.asked++;
    const refusals = group.batches.map((batch) => this.refuse(batch));
    const batches = group.batches.filter((_, index) => refusals[index] === undefined);
    this.inner.driver.write({ seq: group.seq, batches }, (result) => {
      if (result.kind !== "committed") return done(result);
      const rest = [...result.outcomes];
      const outcomes = refusals.map((refusal) => refusal ?? rest.shift() ?? []);
      for (const [index, { appends }] of group.batches.entries()) {
        if (outcomes[index] instanceof Error) continue;
        for (const { journal, data } of appends) this.#note(journal, JSON.parse(data));
      }
      done({ kind: "committed", outcomes });
    });
  }

  commit(batch: Batch, kind?: "post" | "result"): Promise<Committed> {
    return this.writer.commit(batch, kind);
  }

  /** From now on this journal cannot be read. */
  tear(journal: JournalKey): void {
    this.#torn.add(journal);
  }

  read: Store["read"] = async (journal, options) => {
    this.#assertWhole([journal]);
    return this.inner.read(journal, options);
  };
  readMany: Store["readMany"] = async (journals) => {
    this.#assertWhole(journals);
    return this.inner.readMany(journals);
  };

  #assertWhole(journals: readonly JournalKey[]): void {
    if (journals.some((journal) => this.#torn.has(journal))) throw new Error("bad block");
  }

  readAll: Store["readAll"] = (after, limit) => this.inner.readAll(after, limit);
  position: Store["position"] = () => this.inner.position();
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

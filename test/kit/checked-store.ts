/**
 * A store that checks every commit: its entries against the published schemas, its journals against the invariants.
 * It can also reject a commit. Each process has its own writer.
 */

import { systemClock } from "../../src/base/index.js";
import type { Store } from "../../src/engine/ports.js";
import type { Entry } from "../../src/engine/task/entries.js";
import type { Batch, Committed, JournalKey } from "../../src/journal/index.js";
import type { Group, GroupResult, StoreDriver } from "../../src/journal/ports.js";
import { systemLoop } from "../../src/journal/system.js";
import { Writer } from "../../src/journal/writer.js";
import { MailTracker, roundsEndOnce } from "./invariants.js";
import { problemsOf } from "./published-schemas.js";

/** A store with access to its driver, so that several writers can use it one after the other. */
export type DrivenStore = Store & { readonly driver: StoreDriver };

export class CheckedStore implements Store {
  readonly inner: DrivenStore;
  /** The violations found so far. */
  readonly problems: string[] = [];
  /** Number of requested groups. */
  asked = 0;
  /** Returns an error to reject the batch. */
  refuse: (batch: Batch) => Error | undefined = () => undefined;
  writer: Writer;
  readonly #journals = new Map<JournalKey, Entry[]>();
  readonly #torn = new Set<JournalKey>();

  constructor(inner: DrivenStore) {
    this.inner = inner;
    this.writer = this.#newWriter();
  }

  /** Units that are not durable yet. */
  get waiting(): number {
    return this.writer.undurable;
  }

  /** Simulates the death of the process: the next one gets a new writer. */
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

  /** Makes this journal unreadable. */
  damage(journal: JournalKey): void {
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

  readAll: Store["readAll"] = (...page) => this.inner.readAll(...page);
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

  /** Checks the invariants of every journal after all writes. */
  checkInvariants(): void {
    for (const entries of this.#journals.values()) {
      new MailTracker().add(entries);
      roundsEndOnce(entries);
    }
  }
}

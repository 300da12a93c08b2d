/**
 * Data that a version has written must load forever (`src/engine/entries.ts`). The journals here were written by
 * `scripts/corpus.ts` of the version whose folder they are in; they are never changed once that is released.
 */
import { describe, expect, it } from "vitest";
import { entriesOf } from "../../src/engine/task/aggregate.js";
import { type Entry, type EntryKind, JOURNAL_VERSION } from "../../src/engine/task/entries.js";
import { evolve, fold } from "../../src/engine/task/evolve.js";
import { freeze, thaw } from "../../src/engine/task/snapshot.js";
import type { TaskState } from "../../src/engine/task/state.js";
import { checkMailMessage } from "../../src/mail/validate.js";
import { openStore } from "../../src/store/index.js";
import { journalsOf, readJournal, readSummaries, summaryOf, versions } from "./journals.js";

/** The compiler sees to it that none is missing here. */
const KINDS: Readonly<Record<EntryKind, true>> = {
  opened: true,
  resumed: true,
  sent: true,
  turn: true,
  turn_failed: true,
  result: true,
  action_started: true,
  action_finished: true,
  paused: true,
  completed: true,
  failed: true,
  cancelled: true,
  step_limit: true,
  idle: true,
  recovered: true,
  parked: true,
  lent: true,
  released: true,
  carried: true,
  remote_event: true,
  contributed: true,
  compacted: true,
  approvers: true,
  approval_asked: true,
  approval_answered: true,
  usage: true,
  budget: true,
  redefined: true,
};

it("has journals of the present version with every kind of entry", () => {
  const version = `v${JOURNAL_VERSION}`;
  const written = new Set(
    journalsOf(version).flatMap((name) => readJournal(version, name).map(({ t }) => t)),
  );
  expect([...written].sort()).toEqual(Object.keys(KINDS).sort());
});

describe.each(versions())("journals of %s", (version) => {
  const summaries = readSummaries(version);

  it("are all accounted for", () => {
    expect(journalsOf(version).sort()).toEqual(Object.keys(summaries).sort());
  });

  it.each(journalsOf(version))("%s loads to what it meant when it was written", async (name) => {
    const entries = readJournal(version, name);
    expect(summaryOf(folded(entries))).toEqual(summaries[name]);

    const store = await openStore({ path: ":memory:" });
    const journal = folded(entries).key;
    for (const [expected, entry] of entries.entries()) {
      const data = JSON.stringify([entry]);
      await store.commit({ appends: [{ journal, expected, count: 1, data }] });
    }
    const stored = (await store.read(journal)).flatMap(entriesOf);
    await store.close();
    expect(summaryOf(folded(stored))).toEqual(summaries[name]);
  });

  it.each(journalsOf(version))("%s evolves the same from a snapshot at any number", (name) => {
    const entries = readJournal(version, name);
    const whole = asText(folded(entries));
    for (let upTo = 1; upTo <= entries.length; upTo += 1) {
      const state = thaw([...freeze(folded(entries.slice(0, upTo)))]);
      if (state === undefined) throw new Error("our own snapshot is not recognized");
      for (const entry of entries.slice(upTo)) evolve(state, entry);
      expect(asText(state), `from a snapshot at ${upTo}`).toEqual(whole);
    }
  });

  it.each(journalsOf(version))("%s holds valid MAIL", (name) => {
    for (const entry of readJournal(version, name)) {
      if (!("message" in entry) || typeof entry.message === "string") continue;
      expect(checkMailMessage(entry.message)).toMatchObject({ ok: true });
    }
  });
});

describe("a journal that this version cannot read", () => {
  it("is refused when it does not begin with the task's opening", () => {
    expect(() => fold(readJournal("refused", "unknown-first-entry.jsonl"))).toThrow(
      "a journal begins with 'opened', not with 'handed_over'",
    );
  });

  it("is refused at an entry of a kind that it does not know", () => {
    expect(() => fold(readJournal("refused", "unknown-entry.jsonl"))).toThrow(
      /entry 3 of journal \S+ has a kind that this version does not support: .*handed_over/,
    );
  });

  it("is refused when a later version wrote it", () => {
    expect(() => fold(readJournal("refused", "later-version.jsonl"))).toThrow(/has version 1000/);
  });
});

function folded(entries: readonly Entry[]): TaskState {
  const state = fold(entries);
  if (state === undefined) throw new Error("the journal is empty");
  return state;
}

/** As a snapshot holds it: a field without a value and a missing one are alike. */
function asText(state: TaskState): unknown {
  return [...freeze(state)].map(({ name, data }) => [name, JSON.parse(data)]);
}

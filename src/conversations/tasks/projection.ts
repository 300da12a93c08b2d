/** Task conversations in memory: derived from the tasks' journals on demand, as far as needed. */
import { setImmediate as yieldToOthers } from "node:timers/promises";
import type { Entry, InstanceId, Store, TurnTaken } from "../../engine/index.js";
import { Projection, systemLoop } from "../../journal/index.js";
import type { ConversationEntry } from "../rules/entries.js";
import { roughSize } from "../rules/size.js";
import { beginState, type ConversationState, evolve, type TurnRecord } from "../rules/state.js";
import type { Turn } from "../rules/types.js";
import {
  askedBy,
  beginDerivation,
  type DerivationState,
  derive,
  numberOfTurn,
  remember,
  turnOf,
} from "./derive.js";

/** Entries read before yielding to other work. */
const AT_ONCE = 100;
/** Task conversations in memory; the least recently used are dropped. */
const MAX_HELD = 1000;

/** The conversation of one task. */
export interface TaskConversation {
  readonly key: string;
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly derivation: DerivationState;
  readonly state: ConversationState;
  /** The number of the last entry that is included. */
  number: number;
}

type EntryReader = (number: number) => Promise<Entry | undefined>;

export class TaskProjection extends Projection<TaskConversation, Entry> {
  readonly #store: Store;

  constructor(store: Store) {
    super({
      read: (key, page) => store.read(key, page),
      loop: systemLoop,
      most: MAX_HELD,
      number: ({ number }) => number,
      add: advance,
    });
    this.#store = store;
  }

  /** Derives the conversation's entries from some entries of the task. */
  async derive(
    { key, derivation }: TaskConversation,
    entries: readonly Entry[],
    first: number,
  ): Promise<ConversationEntry[]> {
    const asked = this.#reader(key);
    const derived: ConversationEntry[] = [];
    for (const [index, entry] of entries.entries()) {
      derived.push(...derive(derivation, first + index, entry, await callOf(derivation, entry, asked)));
    }
    return derived;
  }

  /** Turns with their contents, in the order of the records; stops when they exceed `most` bytes. */
  async contents(
    { key, derivation }: TaskConversation,
    records: readonly TurnRecord[],
    most = Number.POSITIVE_INFINITY,
  ): Promise<Turn[]> {
    const [read, asked] = [this.#reader(key), this.#reader(key)];
    const turns: Turn[] = [];
    let size = 0;
    for (const [index, { id }] of records.entries()) {
      if (size > most) break;
      if (index % AT_ONCE === AT_ONCE - 1) await yieldToOthers();
      const number = numberOfTurn(id);
      const entry = await read(number);
      if (entry === undefined) continue;
      const turn = turnOf(derivation, number, entry, await callOf(derivation, entry, asked));
      if (turn === undefined) continue;
      turns.push(turn);
      size += roughSize(turn);
    }
    return turns;
  }

  /** Reads entries by number. Consecutive entries often share a row, which is read once. */
  #reader(key: string): EntryReader {
    let first = 0;
    let entries: Entry[] = [];
    return async (number) => {
      if (number < first || number >= first + entries.length) {
        const [row] = await this.#store.read(key, { after: number - 1, limit: 1 });
        first = row?.first ?? 0;
        entries = row === undefined ? [] : JSON.parse(row.data);
      }
      return entries[number - first];
    };
  }
}

/** The agent's turn that made the tool call that this entry ends. */
async function callOf(
  derivation: DerivationState,
  entry: Entry,
  read: EntryReader,
): Promise<TurnTaken | undefined> {
  const number = askedBy(derivation, entry);
  const found = number === undefined ? undefined : await read(number);
  return found?.t === "turn" ? found : undefined;
}

/** Applies the entries of one row. Undefined if the journal does not begin like a task's. */
function advance(
  conversation: TaskConversation | undefined,
  entries: readonly Entry[],
  first: number,
): TaskConversation | undefined {
  const known = conversation ?? begin(entries[0]);
  if (known === undefined) return undefined;
  const { derivation, state } = known;
  const news = entries.map((entry, index) => ({ entry, number: first + index }));
  // The first entry created the conversation above.
  if (conversation === undefined) news.shift();
  for (const { entry, number } of news) remember(derivation, number, entry);
  for (const { entry, number } of news) {
    // Contents are not kept, so the arguments of calls are not needed here.
    for (const derived of derive(derivation, number, entry, undefined)) evolve(state, derived);
    known.number = number;
  }
  return known;
}

function begin(entry: Entry | undefined): TaskConversation | undefined {
  if (entry?.t !== "opened") return undefined;
  const derivation = beginDerivation(entry);
  const [created, ...others] = derive(derivation, 1, entry, undefined);
  if (created?.t !== "created") return undefined;
  const state = beginState(created);
  for (const one of others) evolve(state, one);
  const { key, instance, taskId } = entry.task;
  return { key, instance, taskId, derivation, state, number: 1 };
}

/** The conversations of tasks: read from the tasks' journals when somebody asks, and no further than needed. */
import { setImmediate as othersTurn } from "node:timers/promises";
import type { Entry, TurnTaken } from "../../engine/entries.js";
import type { InstanceId, Store } from "../../engine/ports.js";
import { Projection } from "../../journal/projection.js";
import { systemLoop } from "../../journal/system.js";
import type { ConversationEntry } from "../domain/entries.js";
import { roughSize } from "../domain/size.js";
import { beginState, type ConversationState, evolve, type TurnRecord } from "../domain/state.js";
import type { Turn } from "../domain/types.js";
import { askedBy, beginMemory, derive, type Memory, numberOfTurn, remember, turnOf } from "./derive.js";

/** Entries that are read one by one before others have their turn. */
const AT_ONCE = 100;
/** Conversations of tasks in memory; of more than that, those that nobody has asked for longest are dropped. */
const MOST_HELD = 1000;

/** What is known of one task. */
export interface TaskConversation {
  readonly key: string;
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly memory: Memory;
  readonly state: ConversationState;
  /** The last number of the journal that is in here. */
  number: number;
}

type EntryReader = (number: number) => Promise<Entry | undefined>;

export class TaskConversations extends Projection<TaskConversation, Entry> {
  readonly #store: Store;

  constructor(store: Store) {
    super({
      read: (key, page) => store.read(key, page),
      loop: systemLoop,
      most: MOST_HELD,
      number: ({ number }) => number,
      add: advance,
    });
    this.#store = store;
  }

  /** The conversation's entries for some of the task. */
  async derive(
    { key, memory }: TaskConversation,
    entries: readonly Entry[],
    first: number,
  ): Promise<ConversationEntry[]> {
    const asked = this.#reader(key);
    const derived: ConversationEntry[] = [];
    for (const [index, entry] of entries.entries()) {
      derived.push(...derive(memory, first + index, entry, await callOf(memory, entry, asked)));
    }
    return derived;
  }

  /** Turns with their contents, in the order of the records; no more of them once they are as large as this. */
  async contents(
    { key, memory }: TaskConversation,
    records: readonly TurnRecord[],
    most = Number.POSITIVE_INFINITY,
  ): Promise<Turn[]> {
    const [read, asked] = [this.#reader(key), this.#reader(key)];
    const turns: Turn[] = [];
    let size = 0;
    for (const [index, { id }] of records.entries()) {
      if (size > most) break;
      if (index % AT_ONCE === AT_ONCE - 1) await othersTurn();
      const number = numberOfTurn(id);
      const entry = await read(number);
      if (entry === undefined) continue;
      const turn = turnOf(memory, number, entry, await callOf(memory, entry, asked));
      if (turn === undefined) continue;
      turns.push(turn);
      size += roughSize(turn);
    }
    return turns;
  }

  /** Entries by their number. Those that are asked for one after the other often share a row, which is read once. */
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

/** The turn in which the tool call was made that an entry is the end of. */
async function callOf(memory: Memory, entry: Entry, read: EntryReader): Promise<TurnTaken | undefined> {
  const number = askedBy(memory, entry);
  const found = number === undefined ? undefined : await read(number);
  return found?.t === "turn" ? found : undefined;
}

/** Adds what was stored together. Nothing if the journal does not begin like a task's. */
function advance(
  conversation: TaskConversation | undefined,
  entries: readonly Entry[],
  first: number,
): TaskConversation | undefined {
  const known = conversation ?? begin(entries[0]);
  if (known === undefined) return undefined;
  const { memory, state } = known;
  const news = entries.map((entry, index) => ({ entry, number: first + index }));
  // The first entry is what a conversation begins with.
  if (conversation === undefined) news.shift();
  for (const { entry, number } of news) remember(memory, number, entry);
  for (const { entry, number } of news) {
    // Contents of turns are not held, so the arguments of calls are not missed here.
    for (const derived of derive(memory, number, entry, undefined)) evolve(state, derived);
    known.number = number;
  }
  return known;
}

function begin(entry: Entry | undefined): TaskConversation | undefined {
  if (entry?.t !== "opened") return undefined;
  const memory = beginMemory(entry);
  const [created, ...others] = derive(memory, 1, entry, undefined);
  if (created?.t !== "created") return undefined;
  const state = beginState(created);
  for (const one of others) evolve(state, one);
  const { key, instance, taskId } = entry.task;
  return { key, instance, taskId, memory, state, number: 1 };
}

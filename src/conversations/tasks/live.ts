/** The conversations of tasks in memory: read from the tasks' journals when somebody asks, and no further than needed. */
import { setImmediate as othersTurn } from "node:timers/promises";
import type { Entry, TurnTaken } from "../../engine/entries.js";
import type { InstanceId, JournalRow, Store } from "../../engine/ports.js";
import type { ConversationEntry } from "../domain/entries.js";
import { roughSize } from "../domain/size.js";
import { beginState, type ConversationState, evolve, type TurnRecord } from "../domain/state.js";
import type { Turn } from "../domain/types.js";
import { askedBy, beginMemory, derive, type Memory, numberOfTurn, remember, turnOf } from "./derive.js";

const PAGE = 500;
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

export function taskEntries(row: Pick<JournalRow, "data">): Entry[] {
  const entries: Entry[] = JSON.parse(row.data);
  return entries;
}

export class TaskConversationCache {
  readonly #store: Store;
  /** Least recently used first. */
  readonly #held = new Map<string, TaskConversation>();
  readonly #reading = new Map<string, Promise<TaskConversation | undefined>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** As far as its journal is committed. Nothing if the journal is not that of a task. */
  async get(key: string): Promise<TaskConversation | undefined> {
    // Whoever asks now must see what is committed now: a reading under way may have begun too early.
    await this.#reading.get(key);
    const known = this.#reading.get(key);
    if (known !== undefined) return known;
    const reading = this.#read(key).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  /** At least up to a number; what is in memory is enough if it reaches that far. */
  async upTo(key: string, number: number): Promise<TaskConversation | undefined> {
    const held = this.#held.get(key);
    return held !== undefined && held.number >= number ? held : this.get(key);
  }

  forget(key: string): void {
    this.#held.delete(key);
  }

  /** The conversation's entries for one entry of the task. */
  async derive(conversation: TaskConversation, number: number, entry: Entry): Promise<ConversationEntry[]> {
    const { key, memory } = conversation;
    return derive(memory, number, entry, await this.#asked(key, askedBy(memory, entry)));
  }

  /** Turns with their contents, in the order of the records; no more of them once they are as large as this. */
  async contents(
    { key, memory }: TaskConversation,
    records: readonly TurnRecord[],
    most = Number.POSITIVE_INFINITY,
  ): Promise<Turn[]> {
    const turns: Turn[] = [];
    let size = 0;
    for (const [index, { id }] of records.entries()) {
      if (size > most) break;
      if (index % AT_ONCE === AT_ONCE - 1) await othersTurn();
      const number = numberOfTurn(id);
      const entry = await this.#entry(key, number);
      if (entry === undefined) continue;
      const turn = turnOf(memory, number, entry, await this.#asked(key, askedBy(memory, entry)));
      if (turn === undefined) continue;
      turns.push(turn);
      size += roughSize(turn);
    }
    return turns;
  }

  async #asked(key: string, number: number | undefined): Promise<TurnTaken | undefined> {
    const entry = number === undefined ? undefined : await this.#entry(key, number);
    return entry?.t === "turn" ? entry : undefined;
  }

  async #entry(key: string, number: number): Promise<Entry | undefined> {
    const [row] = await this.#store.read(key, { after: number - 1, limit: 1 });
    return row === undefined ? undefined : taskEntries(row)[number - row.first];
  }

  async #read(key: string): Promise<TaskConversation | undefined> {
    let conversation = this.#held.get(key);
    for (;;) {
      const rows = await this.#store.read(key, { after: conversation?.number ?? 0, limit: PAGE });
      for (const row of rows) {
        conversation = advance(conversation, row);
        if (conversation === undefined) return undefined;
      }
      if (rows.length < PAGE) break;
      await othersTurn();
    }
    if (conversation === undefined) return undefined;
    this.#held.delete(key);
    this.#held.set(key, conversation);
    const [oldest] = this.#held.keys();
    if (this.#held.size > MOST_HELD && oldest !== undefined) this.#held.delete(oldest);
    return conversation;
  }
}

/** Adds an append. Nothing if the journal does not begin like a task's. */
function advance(conversation: TaskConversation | undefined, row: JournalRow): TaskConversation | undefined {
  const entries = taskEntries(row);
  const known = conversation ?? begin(entries[0]);
  if (known === undefined) return undefined;
  const { memory, state } = known;
  // Contents of turns are not held, so the arguments of calls are not missed here.
  const fresh = entries.map((entry, index) => ({ entry, number: row.first + index }));
  const news = fresh.filter(({ number }) => number > known.number);
  for (const { entry, number } of news) remember(memory, number, entry);
  for (const { entry, number } of news) {
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

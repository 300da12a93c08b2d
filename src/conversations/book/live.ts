/** Conversations in memory: read from their journals when somebody asks, dropped when nobody has for long. */
import { setImmediate as othersTurn } from "node:timers/promises";
import type { JournalRow, Store } from "../../engine/ports.js";
import type { ConversationEntry } from "../domain/entries.js";
import { beginState, type ConversationState, evolve } from "../domain/state.js";

/** A conversation in memory. `state` may be ahead of the disk; `committed` says how far the disk is. */
export class LiveConversation {
  readonly state: ConversationState;
  committed: number;
  /** A commit failed: what `state` says is not what is on disk, and it must be read again. */
  lost = false;
  readonly #pending = new Set<Promise<void>>();

  constructor(state: ConversationState, committed: number) {
    this.state = state;
    this.committed = committed;
  }

  get busy(): boolean {
    return this.#pending.size > 0;
  }

  /** Resolves when every commit that is under way now has ended, well or badly. */
  get settled(): Promise<unknown> {
    return Promise.all(this.#pending);
  }

  track(commit: Promise<void>): void {
    const end = (): void => {
      this.#pending.delete(ended);
    };
    const ended = commit.then(end, end);
    this.#pending.add(ended);
  }
}

const PAGE = 1000;

export function conversationEntries(row: Pick<JournalRow, "data">): ConversationEntry[] {
  const entries: ConversationEntry[] = JSON.parse(row.data);
  return entries;
}

/** Nothing if there is no such journal. */
export async function loadConversation(store: Store, id: string): Promise<LiveConversation | undefined> {
  let state: ConversationState | undefined;
  for (;;) {
    const rows = await store.read(id, { after: state?.number ?? 0, limit: PAGE });
    for (const row of rows) {
      for (const entry of conversationEntries(row)) {
        if (state !== undefined) evolve(state, entry);
        else if (entry.t === "created") state = beginState(entry);
        else throw new Error(`the journal of conversation ${id} does not begin with its creation`);
      }
    }
    if (rows.length < PAGE) break;
    // A long conversation takes its time, and nobody else has to wait for it.
    await othersTurn();
  }
  return state === undefined ? undefined : new LiveConversation(state, state.number);
}

export interface CacheLimits {
  readonly maxConversations: number;
  readonly maxTurns: number;
}

/** Bounded by what it holds. Conversations with commits under way are never dropped. */
export class ConversationCache {
  readonly #limits: CacheLimits;
  readonly #load: (id: string) => Promise<LiveConversation | undefined>;
  /** Least recently used first. */
  readonly #live = new Map<string, LiveConversation>();
  readonly #loading = new Map<string, Promise<LiveConversation | undefined>>();
  #turnsWhenTrimmed = 0;
  #turnsSince = 0;
  /** The one that was added last is about to be used. */
  #newest: LiveConversation | undefined;
  /** The one at the end of the map. */
  #latest: LiveConversation | undefined;

  constructor(limits: CacheLimits, load: (id: string) => Promise<LiveConversation | undefined>) {
    this.#limits = limits;
    this.#load = load;
  }

  get size(): number {
    return this.#live.size;
  }

  /** Only if it is in memory. */
  peek(id: string): LiveConversation | undefined {
    const live = this.#live.get(id);
    return live === undefined || live.lost ? undefined : live;
  }

  /** Only if it is in memory; it stays there for longer. */
  use(id: string): LiveConversation | undefined {
    const live = this.peek(id);
    if (live === undefined || live === this.#latest) return live;
    this.#live.delete(id);
    this.#live.set(id, live);
    this.#latest = live;
    return live;
  }

  async get(id: string): Promise<LiveConversation | undefined> {
    const live = this.use(id);
    if (live !== undefined) return live;
    // While commits of a lost picture are under way, the journal may still grow.
    await this.#live.get(id)?.settled;
    const known = this.#loading.get(id);
    if (known !== undefined) return known;
    const loading = this.#load(id).then((loaded) => {
      if (loaded !== undefined) this.add(loaded);
      return loaded;
    });
    this.#loading.set(id, loading);
    try {
      return await loading;
    } finally {
      this.#loading.delete(id);
    }
  }

  add(live: LiveConversation): void {
    const { id } = live.state.header;
    this.#live.delete(id);
    this.#live.set(id, live);
    this.#newest = live;
    this.#latest = live;
    this.grown(live.state.turns.length);
  }

  /** Turns were added. */
  grown(turns = 1): void {
    this.#turnsSince += turns;
    const held = this.#turnsWhenTrimmed + this.#turnsSince;
    if (held > this.#limits.maxTurns || this.#live.size > this.#limits.maxConversations) this.#trim();
  }

  forget(live: LiveConversation): void {
    live.lost = true;
    const { id } = live.state.header;
    if (this.#live.get(id) === live && !live.busy) this.#live.delete(id);
  }

  #trim(): void {
    let turns = 0;
    for (const live of this.#live.values()) turns += live.state.turns.length;
    let left = this.#live.size;
    for (const [id, live] of this.#live) {
      if (turns <= this.#limits.maxTurns * 0.9 && left <= this.#limits.maxConversations * 0.9) break;
      if (live.busy || live === this.#newest) continue;
      this.#live.delete(id);
      turns -= live.state.turns.length;
      left--;
    }
    this.#turnsWhenTrimmed = turns;
    this.#turnsSince = 0;
  }
}

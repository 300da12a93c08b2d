/**
 * Where conversations stand: brought into memory when somebody asks, changed by what the domain decides, and committed
 * before anybody is told (law 1).
 */
import { type Clock, type Ids, type JournalRow, StaleAppendError, type Store } from "../../engine/ports.js";
import { assertCapability, requireHistoryReader } from "../domain/checks.js";
import type { ConversationEntry } from "../domain/entries.js";
import { MapError } from "../domain/errors.js";
import type { Moment } from "../domain/moment.js";
import { HEAVIEST_PAGE } from "../domain/params.js";
import type { TurnPage, View } from "../domain/queries.js";
import { conversationAt, evolve, type TurnRecord } from "../domain/state.js";
import type { Caller, Identity, Turn } from "../domain/types.js";
import type { EventLog } from "../log/event-log.js";
import { readTurns, type TurnList, turnList } from "./contents.js";
import {
  type CacheLimits,
  ConversationCache,
  conversationEntries,
  type LiveConversation,
  loadConversation,
} from "./live.js";
import { rowsFor } from "./rows.js";
import { ConversationSource } from "./source.js";

export interface ShelfParts {
  readonly store: Store;
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: Ids;
  /** What is known about the bearer of an id. */
  readonly identify: (id: string, space: string) => Identity;
  readonly cache?: Partial<CacheLimits>;
}

export type SomeEntries = readonly [ConversationEntry, ...ConversationEntry[]];

export interface Written<Entries extends SomeEntries> {
  readonly live: LiveConversation;
  readonly entries: Entries;
  /** The number of the last of them. */
  readonly last: number;
}

const DEFAULT_CACHE: CacheLimits = { maxConversations: 10_000, maxTurns: 500_000 };

/** How often a decision is made again because somebody else wrote first. */
const MOST_ATTEMPTS = 5;

export class Shelf {
  readonly #parts: ShelfParts;
  readonly #cache: ConversationCache;
  readonly #source: ConversationSource;

  constructor(parts: ShelfParts) {
    this.#parts = parts;
    this.#cache = new ConversationCache({ ...DEFAULT_CACHE, ...parts.cache }, (id) =>
      loadConversation(parts.store, id),
    );
    this.#source = new ConversationSource(
      (id) => this.#cache.peek(id),
      (id) => this.#cache.get(id),
    );
    parts.log.addSource(this.#source);
  }

  /** Whether the id is known, without asking the store, to be that of a conversation here. */
  isLoaded(id: string): boolean {
    return this.#cache.peek(id) !== undefined;
  }

  /** In memory now; for those who watch the process. */
  get loaded(): number {
    return this.#cache.size;
  }

  moment(space: string): Moment {
    const { clock, ids, identify } = this.#parts;
    return {
      now: clock.now(),
      id: (prefix) => `${prefix}-${ids.ordered()}`,
      identify: (id) => identify(id, space),
    };
  }

  // --- reading --------------------------------------------------------------------------------------------------

  /** @throws MapError CONVERSATION_NOT_FOUND */
  async open(id: string, caller: Caller | undefined): Promise<LiveConversation> {
    const live = id.startsWith("conv-") ? (this.#cache.use(id) ?? (await this.#cache.get(id))) : undefined;
    const foreign = live !== undefined && caller !== undefined && live.state.header.space !== caller.space;
    if (live === undefined || live.committed === 0 || foreign) {
      throw new MapError("CONVERSATION_NOT_FOUND", undefined, { conversationId: id });
    }
    return live;
  }

  /** For those who ask about the past. @throws MapError */
  async history(caller: Caller, id: string): Promise<View> {
    const live = await this.open(id, caller);
    assertCapability(caller, "canViewHistory");
    const viewer = requireHistoryReader(live.state, caller, live.committed);
    return { state: live.state, viewer, upTo: live.committed };
  }

  /** No more of them once they are as large as `most`. */
  contents({ state, upTo }: View, records: readonly TurnRecord[], most?: number): Promise<Turn[]> {
    return readTurns(this.#parts.store, state.header.id, records, upTo, most);
  }

  /** As many of them as are fit for one answer. */
  async page(view: View, page: TurnPage): Promise<TurnList> {
    return turnList(page, await this.contents(view, page.turns, HEAVIEST_PAGE));
  }

  /** When the last entry was made. The journal need not be read for conversations in memory. */
  async updatedAt(id: string, createdAt: number): Promise<number> {
    const live = this.#cache.peek(id);
    if (live !== undefined && live.committed > 0) return conversationAt(live.state, live.committed).updatedAt;
    const { store } = this.#parts;
    const last = await store.lastNumber(id);
    const [row] = await store.read(id, { after: last - 1, limit: 1 });
    return row === undefined ? createdAt : (conversationEntries(row).at(-1)?.at ?? createdAt);
  }

  // --- writing --------------------------------------------------------------------------------------------------

  /** A new one, with its first entries already in its state. Resolves when it is durable. */
  add(live: LiveConversation, entries: SomeEntries): Promise<void> {
    this.#cache.add(live);
    return this.#commit(live, entries, JSON.stringify(entries), 0);
  }

  /**
   * Decides, commits, and resolves when it is durable. The decision is made on what is about to be committed, too; so
   * one that is refused waits until that is certain, and is made again if it was not.
   */
  async write<Entries extends SomeEntries>(
    id: string,
    caller: Caller | undefined,
    decide: (state: LiveConversation["state"], moment: Moment) => Entries,
  ): Promise<Written<Entries>> {
    for (let attempt = 1; ; attempt++) {
      const live = await this.open(id, caller);
      if (this.#cache.peek(id) !== live) continue;
      try {
        const entries = decide(live.state, this.moment(live.state.header.space));
        // Asked before the state is changed: a refusal then costs nobody the picture that the others build on.
        const data = JSON.stringify(entries);
        if (this.#parts.store.isFull?.(entries.length + 2, data.length) === true) throw busy();
        const first = live.state.number;
        for (const entry of entries) evolve(live.state, entry);
        await this.#commit(live, entries, data, first);
        return { live, entries, last: first + entries.length };
      } catch (error) {
        const uncertain = error instanceof MapError && live.busy;
        if (uncertain) await live.settled;
        const again = error instanceof StaleAppendError || (uncertain && live.lost);
        if (!again) throw error;
        // Others were refused by the store, time and again, and took with them what was built on theirs.
        if (attempt >= MOST_ATTEMPTS) throw busy();
      }
    }
  }

  /** The entries are in the state already: what is decided next builds on them. */
  #commit(
    live: LiveConversation,
    entries: readonly ConversationEntry[],
    data: string,
    expected: number,
  ): Promise<void> {
    const journal = live.state.header.id;
    const last = expected + entries.length;
    const append = { journal, expected, count: entries.length, data };
    const commit = this.#parts.store.commit({ appends: [append], rows: rowsFor(live.state, entries) }).then(
      ({ position }) => {
        live.committed = last;
        const row: JournalRow = { journal, first: expected + 1, last, position, data };
        this.#source.remember(row, entries);
        this.#parts.log.committed(row);
      },
      (error: unknown) => {
        this.#cache.forget(live);
        throw error;
      },
    );
    live.track(commit);
    this.#cache.grown();
    return commit;
  }
}

function busy(): MapError {
  return new MapError("EXHAUSTED", "too much is waiting to be stored");
}

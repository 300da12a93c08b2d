/**
 * Native conversations on the journal kernel: commands are answered when they are durable, readers see what is, and
 * what nobody has used for long leaves memory.
 */
import type { Clock, Ids, Store } from "../../engine/ports.js";
import { Kernel, type Live, UnknownJournalError } from "../../journal/kernel.js";
import { systemLoop } from "../../journal/system.js";
import { assertCapability, requireHistoryReader } from "../domain/checks.js";
import {
  type ConversationCommand,
  type ConversationTypes,
  conversationAggregate,
  conversationNotFound,
} from "../domain/conversation.js";
import type { ConversationEntry } from "../domain/entries.js";
import type { DomainRules } from "../domain/moment.js";
import type { View } from "../domain/queries.js";
import type { ConversationState } from "../domain/state.js";
import type { Caller } from "../domain/types.js";
import type { Viewer } from "../domain/visibility.js";
import { rowsFor } from "./rows.js";

export interface MemoryLimits {
  readonly maxConversations: number;
  readonly maxTurns: number;
}

export interface ConversationKernelParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly rules: DomainRules;
  readonly memory?: Partial<MemoryLimits>;
  /** Told of what goes wrong where nobody waits for an answer. */
  readonly report: (error: unknown) => void;
}

/** What a command has led to, now that it is durable. */
export interface Written {
  readonly state: ConversationState;
  readonly entries: readonly ConversationEntry[];
  /** The number of the last of them. */
  readonly last: number;
}

/** Turns of a conversation that were counted. */
interface Counted {
  turns: number;
}

type Native = ConversationTypes<Counted>;

const DEFAULT_MEMORY: MemoryLimits = { maxConversations: 10_000, maxTurns: 500_000 };
/** Once something has to leave memory, a little more than that does. */
const KEPT = 0.9;
/** Commands that may wait for one conversation while it is being read. */
const MOST_WAITING = 10_000;
const PREFIX = "conv-";

export class ConversationKernel {
  readonly #store: Store;
  readonly #memory: MemoryLimits;
  readonly #kernel: Kernel<Native>;
  /** Those in memory, least recently used first. */
  readonly #used = new Set<string>();
  #latest: string | undefined;
  #turns = 0;

  constructor({ store, clock, ids, rules, memory, report }: ConversationKernelParts) {
    this.#store = store;
    this.#memory = { ...DEFAULT_MEMORY, ...memory };
    this.#kernel = new Kernel<Native>({
      aggregate: conversationAggregate(rules),
      store,
      clock,
      loop: systemLoop,
      limits: { snapshotAfter: Number.POSITIVE_INFINITY, waitingCommands: MOST_WAITING },
      moment: () => momentAt(clock.now(), ids),
      report: ({ message, task, cause }) => report(new Error(`conversation ${task}: ${message}`, { cause })),
      prepare: ({ state }, entries) => ({ rows: rowsFor(state, entries), orders: [] }),
      attach: (live) => this.#count(live),
      takeUp: () => {},
      suspend: () => {},
      detach: ({ key, work }) => {
        this.#used.delete(key);
        this.#turns -= work.turns;
      },
      decided: ({ work }, { entries }) => {
        for (const { t } of entries) if (t === "turn") this.#add(work, 1);
      },
      reactors: [],
      idle: () => this.#makeRoom(),
    });
  }

  owns(journal: string): boolean {
    return journal.startsWith(PREFIX);
  }

  /** Whether it is in memory. */
  has(id: string): boolean {
    return this.#kernel.peek(id) !== undefined;
  }

  get size(): number {
    return this.#kernel.size;
  }

  /** Nothing is decided any more. */
  stop(): void {
    this.#kernel.stop();
  }

  // --- writing --------------------------------------------------------------------------------------------------

  /** For whoever has much to do before there is something to write. @throws what the store says when it takes nothing */
  assertWritable(): void {
    this.#store.writer.admit();
  }

  /** @throws MapError, and what the store says when it takes nothing */
  create(command: Extract<ConversationCommand, { type: "create" }>): Promise<Written> {
    return new Promise((resolve, reject) => {
      this.assertWritable();
      this.#kernel.create(command.id, command, handling(resolve, reject));
    });
  }

  /** @throws MapError, and what the store says when it takes nothing */
  submit(id: string, command: Exclude<ConversationCommand, { type: "create" }>): Promise<Written> {
    return new Promise((resolve, reject) => {
      if (!this.owns(id)) throw conversationNotFound(id);
      this.assertWritable();
      this.#kernel.assertRoomIn(id);
      this.#use(id);
      this.#kernel.submit(
        id,
        command,
        handling(resolve, (error) =>
          reject(error instanceof UnknownJournalError ? conversationNotFound(id) : error),
        ),
      );
    });
  }

  // --- reading --------------------------------------------------------------------------------------------------

  /** As of what is durable; nothing if there is no such conversation. The reader is called at once, or when it is read. */
  async read<V>(id: string, reader: (state: ConversationState, upTo: number) => V): Promise<V | undefined> {
    if (!this.owns(id)) return undefined;
    this.#use(id);
    return this.#kernel.readVersioned(id, reader);
  }

  /** The same without waiting: nothing, too, if it is not in memory. */
  peek<V>(id: string, reader: (state: ConversationState, upTo: number) => V): V | undefined {
    const live = this.#kernel.peek(id);
    return live === undefined || live.durable === 0 ? undefined : reader(live.state, live.durable);
  }

  /**
   * What the caller may look at; `viewerOf` says as whom.
   * @throws MapError
   */
  async view(
    caller: Caller,
    id: string,
    viewerOf: (state: ConversationState, number: number) => Viewer,
  ): Promise<View> {
    const view = await this.read(id, (state, upTo): View | undefined =>
      state.header.space === caller.space ? { state, viewer: viewerOf(state, upTo), upTo } : undefined,
    );
    if (view === undefined) throw conversationNotFound(id);
    return view;
  }

  /** For those who ask about the past. @throws MapError */
  history(caller: Caller, id: string): Promise<View> {
    return this.view(caller, id, (state, number) => {
      assertCapability(caller, "canViewHistory");
      return requireHistoryReader(state, caller, number);
    });
  }

  /** When the last entry was made, if that is known without reading anything. */
  updatedAt(id: string): number | undefined {
    return this.#kernel.peek(id)?.summary?.updatedAt;
  }

  // --- memory ---------------------------------------------------------------------------------------------------

  #use(id: string): void {
    if (id === this.#latest || !this.#used.delete(id)) return;
    this.#used.add(id);
    this.#latest = id;
  }

  /** A conversation came into memory, or was read again. */
  #count(live: Live<Native>): Counted {
    const { key, state } = live;
    if (live.hasWork) this.#turns -= live.work.turns;
    this.#used.delete(key);
    this.#used.add(key);
    this.#latest = key;
    const counted = { turns: 0 };
    this.#add(counted, state.turns.length);
    return counted;
  }

  #add(counted: Counted, turns: number): void {
    counted.turns += turns;
    this.#turns += turns;
  }

  /** The one that was used last stays, however large it is. */
  #makeRoom(): void {
    if (this.#fits(1)) return;
    for (const key of this.#used) {
      if (this.#fits(KEPT)) return;
      const live = key === this.#latest ? undefined : this.#kernel.peek(key);
      if (live !== undefined) this.#kernel.evict(live);
    }
  }

  #fits(share: number): boolean {
    const { maxConversations, maxTurns } = this.#memory;
    return this.#used.size <= maxConversations * share && this.#turns <= maxTurns * share;
  }
}

function handling(resolve: (written: Written) => void, reject: (error: Error) => void) {
  return {
    done: (unit: { live: Live<Native>; entries: readonly ConversationEntry[]; last: number } | undefined) => {
      if (unit === undefined) reject(new Error("a command to a conversation has changed nothing"));
      else resolve({ state: unit.live.state, entries: unit.entries, last: unit.last });
    },
    refused: reject,
    failed: reject,
  };
}

function momentAt(at: number, ids: Ids) {
  return {
    at,
    // Conversations count in milliseconds, and this would cost as much as deciding.
    get timestamp() {
      return new Date(at).toISOString();
    },
    id: () => ids.ordered(),
  };
}

/**
 * Native conversations on the journal kernel: commands resolve when they are durable, readers see committed
 * state, and the least recently used conversations leave memory.
 */

import type { Clock, Ids } from "../../base/index.js";
import { hasCode } from "../../base/index.js";
import type { Store } from "../../engine/index.js";
import type { Live } from "../../journal/index.js";
import { Kernel, systemLoop } from "../../journal/index.js";
import type { ConversationRemove } from "../ports.js";
import { assertCapability, requireHistoryReader } from "../rules/checks.js";
import {
  type ConversationCommand,
  type ConversationTypes,
  conversationAggregate,
  conversationNotFound,
} from "../rules/conversation.js";
import type { ConversationEntry } from "../rules/entries.js";
import type { ConversationView } from "../rules/queries.js";
import type { ConversationState } from "../rules/state.js";
import type { Actor } from "../rules/types.js";
import { isInReach, type Viewer } from "../rules/visibility.js";
import type { ConversationRules } from "../settings.js";
import { rowsFor } from "./rows.js";

export interface MemoryLimits {
  readonly maxConversations: number;
  readonly maxTurns: number;
}

export interface ConversationKernelParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly rules: ConversationRules;
  readonly memory?: Partial<MemoryLimits>;
  /** For failures that no caller is waiting for. */
  readonly report: (error: unknown) => void;
}

/** The result of a durable command. */
export interface Written {
  readonly state: ConversationState;
  readonly entries: readonly ConversationEntry[];
  /** The number of the last entry. */
  readonly last: number;
}

/** Turns of each conversation in memory, as last counted. */
interface Counted {
  turns: number;
}

type Native = ConversationTypes<Counted>;

const DEFAULT_MEMORY: MemoryLimits = { maxConversations: 10_000, maxTurns: 500_000 };
/** Evict a little more than necessary, so that eviction is rare. */
const KEPT = 0.9;
/** Commands that may wait while one conversation is loaded. */
const MAX_WAITING = 10_000;
const PREFIX = "conv-";

export class ConversationKernel {
  readonly #store: Store;
  readonly #memory: MemoryLimits;
  readonly #kernel: Kernel<Native>;
  /** Conversations in memory, least recently used first. */
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
      limits: { snapshotAfter: Number.POSITIVE_INFINITY, waitingCommands: MAX_WAITING },
      moment: () => momentAt(clock.now(), ids),
      report: ({ message, task, cause }) => report(new Error(`conversation ${task}: ${message}`, { cause })),
      prepare: ({ state }, entries) => ({ rows: rowsFor(state, entries), orders: [] }),
      attach: (live) => this.#count(live),
      resume: () => {},
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

  /** Whether the conversation is in memory. */
  has(id: string): boolean {
    return this.#kernel.peek(id) !== undefined;
  }

  get size(): number {
    return this.#kernel.size;
  }

  /** Stops accepting commands. */
  stop(): void {
    this.#kernel.stop();
  }

  // --- writing --------------------------------------------------------------------------------------------------

  /**
   * Rejects early when the store accepts nothing, for callers with expensive work before their command.
   * @throws the store's error
   */
  assertWritable(): void {
    this.#store.writer.admit();
  }

  /** @throws MapError, or the store's error */
  create(command: Extract<ConversationCommand, { type: "create" }>): Promise<Written> {
    return new Promise((resolve, reject) => {
      this.assertWritable();
      this.#kernel.create(command.id, command, handling(resolve, reject));
    });
  }

  /** @throws MapError, or the store's error */
  submit(id: string, command: Exclude<ConversationCommand, { type: "create" }>): Promise<Written> {
    return new Promise((resolve, reject) => {
      if (!this.owns(id)) throw conversationNotFound(id);
      this.assertWritable();
      this.#kernel.assertCapacityIn(id);
      this.#use(id);
      this.#kernel.submit(
        id,
        command,
        handling(resolve, (error) =>
          reject(hasCode(error, "unknown_journal") ? conversationNotFound(id) : error),
        ),
      );
    });
  }

  /** Removes the conversation with its journal. False if it has changed meanwhile. */
  remove(id: string): Promise<boolean> {
    return this.#kernel.remove(
      id,
      () => true,
      (expected) => [{ kind: "conversation.remove", id, expected } satisfies ConversationRemove],
    );
  }

  // --- reading --------------------------------------------------------------------------------------------------

  /**
   * Reads committed state. Undefined if there is no such conversation. `read` is called at once, or after
   * loading.
   */
  async read<V>(id: string, reader: (state: ConversationState, upTo: number) => V): Promise<V | undefined> {
    if (!this.owns(id)) return undefined;
    this.#use(id);
    return this.#kernel.readVersioned(id, reader);
  }

  /** The same without loading. Also undefined if the conversation is not in memory. */
  peek<V>(id: string, reader: (state: ConversationState, upTo: number) => V): V | undefined {
    const live = this.#kernel.peek(id);
    return live === undefined || live.durable === 0 ? undefined : reader(live.state, live.durable);
  }

  /**
   * The conversation as the actor sees it; `viewerOf` decides its relation to the conversation.
   * @throws MapError
   */
  async view(
    actor: Actor,
    id: string,
    viewerOf: (state: ConversationState, number: number) => Viewer,
  ): Promise<ConversationView> {
    const view = await this.read(id, (state, upTo): ConversationView | undefined =>
      isInReach(state, actor) ? { state, viewer: viewerOf(state, upTo), upTo } : undefined,
    );
    if (view === undefined) throw conversationNotFound(id);
    return view;
  }

  /** The same for readers of history. @throws MapError */
  history(actor: Actor, id: string): Promise<ConversationView> {
    return this.view(actor, id, (state, number) => {
      assertCapability(actor, "canViewHistory");
      return requireHistoryReader(state, actor, number);
    });
  }

  /** The time of the last entry, if the conversation is in memory. */
  updatedAt(id: string): number | undefined {
    return this.#kernel.peek(id)?.summary?.updatedAt;
  }

  // --- memory ---------------------------------------------------------------------------------------------------

  #use(id: string): void {
    if (id === this.#latest || !this.#used.delete(id)) return;
    this.#used.add(id);
    this.#latest = id;
  }

  /** A conversation was loaded or reloaded. */
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

  /** The most recently used conversation stays, however large it is. */
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
      if (unit === undefined) reject(new Error("a command to a conversation produced no entries"));
      else resolve({ state: unit.live.state, entries: unit.entries, last: unit.last });
    },
    refused: reject,
    failed: reject,
  };
}

function momentAt(at: number, ids: Ids) {
  return {
    at,
    // Conversations use milliseconds; a finer clock would cost as much as the decision.
    get timestamp() {
      return new Date(at).toISOString();
    },
    id: () => ids.ordered(),
  };
}

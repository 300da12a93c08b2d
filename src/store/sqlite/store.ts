import type { A2aState } from "../../a2a/state.js";
import type { TokenIndex } from "../../auth/tokens/port.js";
import type { ConversationIndex } from "../../conversations/ports.js";
import type { KeyValueMemory } from "../../engine/memory.js";
import type {
  Batch,
  Committed,
  JournalKey,
  JournalRow,
  Snapshot,
  Store,
  TaskIndex,
} from "../../engine/ports.js";
import type { FederationReads } from "../../federation/ports.js";
import type { HttpState } from "../../http/state.js";
import type { MeshReads } from "../../mesh/queue.js";
import type { OutboxReads } from "../../outbox/ports.js";
import { StoreClosedError } from "../errors.js";
import { createConversationIndex } from "./conversations.js";
import type { Database } from "./driver.js";
import { GroupCommit, type GroupLimits } from "./group-commit.js";
import { Journals } from "./journals.js";
import { createMeshReads } from "./mesh.js";
import { createOutboxReads } from "./outbox.js";
import { type Reclaimed, reclaimSpace } from "./reclaim.js";
import type { Room, WriteHandler } from "./room.js";
import { createA2aState } from "./rooms/a2a.js";
import { createTokenIndex } from "./rooms/auth.js";
import { createFederationReads } from "./rooms/federation.js";
import { createHttpState } from "./rooms/http.js";
import { createMemory } from "./rooms/memory.js";
import { createTaskIndex } from "./tasks.js";

export interface StoreParts {
  /** Open, set up and migrated. The store closes it. */
  readonly db: Database;
  readonly rooms: readonly Room[];
  readonly limits: GroupLimits;
  readonly cachedJournals: number;
  /** Called after the database was closed. */
  readonly release: () => void;
}

export interface SqliteInspection {
  readonly journalMode: string;
  readonly synchronous: string;
  readonly autoVacuum: string;
  readonly pageSize: number;
  readonly pages: number;
  /** Pages of removed rows that `reclaim` would give back. */
  readonly freePages: number;
}

/** SQLite answers these pragmas with a number. */
const SYNCHRONOUS = ["off", "normal", "full", "extra"];
const AUTO_VACUUM = ["none", "full", "incremental"];

/**
 * The store over one connection. Everything happens on the calling thread: a read sees exactly what was committed
 * when it was called, and no read ever meets a transaction half way.
 */
export class SqliteStore implements Store {
  readonly tasks: TaskIndex;
  readonly tokens: TokenIndex;
  readonly http: HttpState;
  readonly a2a: A2aState;
  readonly #db: Database;
  readonly #journals: Journals;
  readonly #group: GroupCommit;
  readonly #release: () => void;
  readonly #selectSnapshot;
  #outbox: OutboxReads | undefined;
  #mesh: MeshReads | undefined;
  #conversations: ConversationIndex | undefined;
  #federation: FederationReads | undefined;
  #memory: KeyValueMemory | undefined;
  #closed = false;

  constructor({ db, rooms, limits, cachedJournals, release }: StoreParts) {
    this.#db = db;
    this.#release = release;
    this.#journals = new Journals(db, cachedJournals);
    const handlers = new Map<string, WriteHandler>();
    for (const room of rooms) {
      for (const [kind, handler] of room.prepareWrites({ db, journals: this.#journals })) {
        if (handlers.has(kind)) throw new Error(`two rooms declare the write "${kind}"`);
        handlers.set(kind, handler);
      }
    }
    this.#group = new GroupCommit(db, this.#journals, handlers, limits);
    this.#selectSnapshot = db.prepare<[number], Snapshot>(
      "SELECT number, data FROM snapshots WHERE journal = ?",
    );
    this.tasks = createTaskIndex(db, () => this.#assertOpen());
    this.tokens = createTokenIndex(db, () => this.#assertOpen());
    this.http = createHttpState(db, () => this.#assertOpen());
    this.a2a = createA2aState(db, () => this.#assertOpen());
  }

  /** Prepared when first asked for, so that a store without this room can be opened too. */
  get outbox(): OutboxReads {
    this.#outbox ??= createOutboxReads(this.#db, () => this.#assertOpen());
    return this.#outbox;
  }

  get federation(): FederationReads {
    this.#federation ??= createFederationReads(this.#db, () => this.#assertOpen());
    return this.#federation;
  }

  get conversations(): ConversationIndex {
    this.#conversations ??= createConversationIndex(this.#db, () => this.#assertOpen());
    return this.#conversations;
  }

  /** Prepared when first asked for. */
  get mesh(): MeshReads {
    this.#mesh ??= createMeshReads(this.#db, () => this.#assertOpen());
    return this.#mesh;
  }

  get memory(): KeyValueMemory {
    this.#memory ??= createMemory({
      db: this.#db,
      assertOpen: () => this.#assertOpen(),
      commit: (write) => this.commit({ appends: [], rows: [write] }),
      now: Date.now,
    });
    return this.#memory;
  }

  commit(batch: Batch): Promise<Committed> {
    if (this.#closed) return Promise.reject(new StoreClosedError());
    return this.#group.commit(batch);
  }

  isFull(writes: number, characters: number): boolean {
    return this.#group.isFull(writes, characters);
  }

  async read(
    journal: JournalKey,
    { after = 0, limit }: { after?: number; limit?: number } = {},
  ): Promise<JournalRow[]> {
    this.#assertOpen();
    return this.#journals.read(journal, after, limit);
  }

  async readAll(afterPosition: number, limit: number): Promise<JournalRow[]> {
    this.#assertOpen();
    return this.#journals.readAll(afterPosition, limit);
  }

  async lastNumber(journal: JournalKey): Promise<number> {
    this.#assertOpen();
    return this.#journals.lastNumber(journal);
  }

  async readSnapshot(journal: JournalKey): Promise<Snapshot | undefined> {
    this.#assertOpen();
    const id = this.#journals.idOf(journal);
    return id === undefined ? undefined : this.#selectSnapshot.get(id);
  }

  /**
   * Gives the space of removed tasks back to the file system, in small steps between which other work goes on.
   * To be called after a round of retention.
   */
  async reclaim(): Promise<Reclaimed> {
    this.#assertOpen();
    this.#group.assertWritable();
    return reclaimSpace(this.#db, () => !this.#closed);
  }

  /** How the connection is really set up, and how large the file is: for diagnosis, and for tests. */
  inspect(): SqliteInspection {
    this.#assertOpen();
    const read = (name: string): unknown => this.#db.pragma(name, { simple: true });
    return {
      journalMode: String(read("journal_mode")),
      synchronous: SYNCHRONOUS[Number(read("synchronous"))] ?? "unknown",
      autoVacuum: AUTO_VACUUM[Number(read("auto_vacuum"))] ?? "unknown",
      pageSize: Number(read("page_size")),
      pages: Number(read("page_count")),
      freePages: Number(read("freelist_count")),
    };
  }

  /** Commits what waits, then closes the database and lets go of the lock. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#group.flush();
    try {
      this.#db.close();
    } finally {
      this.#release();
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreClosedError();
  }
}

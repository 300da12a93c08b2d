import type { A2aState } from "../../a2a/state.js";
import type { TokenIndex } from "../../auth/tokens/port.js";
import type { ConversationIndex } from "../../conversations/ports.js";
import type { KeyValueMemory } from "../../engine/memory.js";
import type {
  Batch,
  Clock,
  Committed,
  JournalKey,
  JournalRow,
  Loop,
  Snapshot,
  SnapshotPart,
  StoredJournal,
  TaskIndex,
} from "../../engine/ports.js";
import type { FederationReads } from "../../federation/ports.js";
import type { HttpState } from "../../http/state.js";
import type { StoreDriver } from "../../journal/ports.js";
import { Writer, type WriterLimits } from "../../journal/writer.js";
import type { MeshReads } from "../../mesh/queue.js";
import type { OutboxReads } from "../../outbox/ports.js";
import { StoreClosedError } from "../errors.js";
import type { FullStore } from "../full-store.js";
import { createConversationIndex } from "./conversations.js";
import type { Database } from "./driver.js";
import { ForeignWrites } from "./foreign.js";
import { SqliteGroups } from "./groups.js";
import { Journals } from "./journals.js";
import { createMeshReads } from "./mesh.js";
import { createOutboxReads } from "./outbox.js";
import { type Reclaimed, reclaimSpace } from "./reclaim.js";
import { Removals } from "./removals.js";
import type { Room, WriteHandler } from "./room.js";
import { createA2aState } from "./rooms/a2a.js";
import { createTokenIndex } from "./rooms/auth.js";
import { createFederationReads } from "./rooms/federation.js";
import { createHttpState } from "./rooms/http.js";
import type { JournalSweep } from "./rooms/journal.js";
import { createMemory } from "./rooms/memory.js";
import { TaskList } from "./task-list.js";
import { createTaskIndex } from "./tasks.js";
import { Undo } from "./undo.js";

export interface StoreParts {
  /** Open, set up and migrated. The store closes it. */
  readonly db: Database;
  readonly rooms: readonly Room[];
  readonly clock: Clock;
  readonly loop: Loop;
  readonly writerLimits: Partial<WriterLimits>;
  readonly cachedJournals: number;
  /** Rows of journals, and tasks, that wait in memory for their index. */
  readonly indexBatch: number;
  /** @throws when the file is no longer the one that was opened */
  readonly checkFile: () => void;
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

/** How long `close` waits while nothing can be written. */
const CLOSING_PATIENCE = 5_000;

/** SQLite answers these pragmas with a number. */
const SYNCHRONOUS = ["off", "normal", "full", "extra"];
const AUTO_VACUUM = ["none", "full", "incremental"];

/**
 * The store over one connection. Everything happens on the calling thread: a read sees exactly what was committed
 * when it was called, and no read ever meets a transaction half way.
 */
export class SqliteStore implements FullStore {
  readonly writer: Writer;
  /** What the writer writes with; for those who need a writer of their own over the same data. */
  readonly driver: StoreDriver;
  readonly tasks: TaskIndex;
  readonly tokens: TokenIndex;
  readonly http: HttpState;
  readonly a2a: A2aState;
  readonly #db: Database;
  readonly #journals: Journals;
  readonly #removals: Removals;
  readonly #foreign: ForeignWrites;
  readonly #groups: SqliteGroups;
  readonly #clock: Clock;
  readonly #release: () => void;
  readonly #snapshotNumber;
  readonly #snapshotParts;
  #outbox: OutboxReads | undefined;
  #mesh: MeshReads | undefined;
  #conversations: ConversationIndex | undefined;
  #federation: FederationReads | undefined;
  #memory: KeyValueMemory | undefined;
  #sweeping: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: StoreParts) {
    const { db, rooms, clock, loop, writerLimits, indexBatch } = parts;
    this.#db = db;
    this.#clock = clock;
    this.#release = parts.release;
    const undo = new Undo();
    this.#journals = new Journals(db, undo, parts);
    const journals = this.#journals;
    this.#removals = new Removals(db, journals, undo);
    const removals = this.#removals;
    const taskList = new TaskList(db, undo, indexBatch);
    this.#foreign = new ForeignWrites(db, () => {
      journals.reload();
      removals.reload();
      taskList.reload();
    });
    const handlers = new Map<string, WriteHandler>();
    for (const room of rooms) {
      for (const [kind, handler] of room.prepareWrites({ db, journals, removals, taskList })) {
        if (handlers.has(kind)) throw new Error(`two rooms declare the write "${kind}"`);
        handlers.set(kind, handler);
      }
    }
    this.#groups = new SqliteGroups({
      db,
      journals,
      handlers,
      undo,
      checkFile: parts.checkFile,
      begin: () => {
        this.#foreign.check();
        removals.begin();
        journals.writeIndex();
        taskList.write();
      },
      committed: () => this.#finishRemovals(),
    });
    this.driver = this.#groups;
    this.writer = new Writer({
      driver: this.driver,
      clock,
      loop,
      limits: writerLimits,
      position: journals.position,
    });
    this.#snapshotNumber = db
      .prepare<[number], number>("SELECT number FROM snapshots WHERE journal = ?")
      .pluck();
    this.#snapshotParts = db.prepare<[number], SnapshotPart>(
      "SELECT name, data FROM snapshot_parts WHERE journal = ? ORDER BY name",
    );
    this.tasks = createTaskIndex(db, { taskList, loop, ready: () => this.#ready() });
    this.tokens = createTokenIndex(db, () => this.#assertOpen());
    this.http = createHttpState(db, () => this.#assertOpen());
    this.a2a = createA2aState(db, () => this.#assertOpen());
    this.#finishRemovals();
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
      commit: (write) => this.commit({ appends: [], rows: [write] }, "result"),
      now: Date.now,
    });
    return this.#memory;
  }

  commit(batch: Batch, kind?: "post" | "result"): Promise<Committed> {
    if (this.#closing !== undefined) return Promise.reject(new StoreClosedError());
    const invalid = this.#groups.invalid(batch);
    return invalid === undefined ? this.writer.commit(batch, kind) : Promise.reject(invalid);
  }

  async read(
    journal: JournalKey,
    { after = 0, limit }: { after?: number; limit?: number } = {},
  ): Promise<JournalRow[]> {
    this.#ready();
    return this.#journals.read(journal, after, limit);
  }

  async readMany(journals: readonly JournalKey[]): Promise<readonly StoredJournal[]> {
    this.#ready();
    return journals.map((journal) => {
      const snapshot = this.#readSnapshot(journal);
      return { journal, snapshot, rows: this.#journals.read(journal, snapshot?.number ?? 0, undefined) };
    });
  }

  async readAll(afterPosition: number, limit: number): Promise<JournalRow[]> {
    this.#ready();
    return this.#journals.readAll(afterPosition, limit);
  }

  async position(): Promise<number> {
    this.#ready();
    return this.#journals.position;
  }

  async lastNumber(journal: JournalKey): Promise<number> {
    this.#ready();
    return this.#journals.lastNumber(journal);
  }

  async readSnapshot(journal: JournalKey): Promise<Snapshot | undefined> {
    this.#ready();
    return this.#readSnapshot(journal);
  }

  /**
   * Gives the space of removed tasks back to the file system, in small steps between which other work goes on.
   * To be called after a round of retention.
   */
  async reclaim(): Promise<Reclaimed> {
    this.#assertOpen();
    await this.#sweeping;
    if (this.writer.failure !== undefined) throw this.writer.failure;
    return reclaimSpace(this.#db, () => this.#closing === undefined && this.writer.failure === undefined);
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

  /** Takes nothing more, writes what waits, then closes the database and lets go of the lock. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#drained();
    this.writer.close();
    try {
      this.#db.close();
    } finally {
      this.#release();
    }
  }

  /** A store that cannot be written is not waited for without end; one that is only slow is. */
  async #drained(): Promise<void> {
    const drained = this.writer.drained().then(() => true);
    for (;;) {
      let cancel = (): void => {};
      const late = new Promise<boolean>((resolve) => {
        cancel = this.#clock.after(CLOSING_PATIENCE, () => resolve(this.writer.health.state !== "open"));
      });
      const done = await Promise.race([drained, late]);
      cancel();
      if (done) return;
    }
  }

  /** Removes what is left of removed journals, a step at a time and behind what waits already. */
  #finishRemovals(): void {
    if (this.#sweeping !== undefined || !this.#removals.unfinished) return;
    const step: JournalSweep = { kind: "journal.sweep" };
    const sweep = async (): Promise<void> => {
      while (this.#removals.unfinished && this.#closing === undefined) {
        await this.writer.commit({ appends: [], rows: [step] }, "result");
      }
    };
    // A step that fails is taken up by the next process that opens the store.
    this.#sweeping = sweep()
      .catch(() => {})
      .finally(() => {
        this.#sweeping = undefined;
      });
  }

  #readSnapshot(journal: JournalKey): Snapshot | undefined {
    const id = this.#journals.idOf(journal);
    if (id === undefined) return undefined;
    const number = this.#snapshotNumber.get(id);
    return number === undefined ? undefined : { number, parts: this.#snapshotParts.all(id) };
  }

  /** Before a read that uses what is kept in memory. */
  #ready(): void {
    this.#assertOpen();
    this.#foreign.check();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new StoreClosedError();
  }
}

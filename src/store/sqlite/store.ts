import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { TokenReads } from "../../auth/index.js";
import type { Clock } from "../../base/index.js";
import type { ConversationReads } from "../../conversations/index.js";
import type { ApprovalReads, KeyValueStore, TaskReads, UsageReads } from "../../engine/index.js";
import type { FederationReads } from "../../federation/index.js";
import type {
  Batch,
  Committed,
  JournalKey,
  JournalRow,
  Loop,
  Snapshot,
  SnapshotPart,
  StoredJournal,
} from "../../journal/index.js";
import { type StoreDriver, storeClosed, Writer, type WriterLimits } from "../../journal/index.js";
import type { MeshReads } from "../../mesh/index.js";
import type { OutboxReads } from "../../outbox/index.js";
import type { FullStore } from "../full-store.js";
import type { A2aStore } from "../ports/a2a.js";
import type { HttpStore } from "../ports/http.js";
import type { PreparedWrite, TableSet } from "../table-set.js";
import { createA2aStore } from "../tables/a2a.js";
import { createApprovalReads } from "../tables/approvals.js";
import { createTokenReads } from "../tables/auth.js";
import { createConversationReads } from "../tables/conversations.js";
import { createTaskReads } from "../tables/engine-reads.js";
import { createFederationReads } from "../tables/federation.js";
import { createHttpStore } from "../tables/http.js";
import type { JournalSweep } from "../tables/journal.js";
import { createKeyValueStore } from "../tables/memory.js";
import { createMeshReads } from "../tables/mesh-reads.js";
import { createOutboxReads } from "../tables/outbox.js";
import { createUsageReads } from "../tables/usage.js";
import type { Database } from "./driver.js";
import { ForeignWrites } from "./foreign.js";
import { SqliteGroups } from "./groups.js";
import { Journals } from "./journals.js";
import { type Reclaimed, reclaimSpace } from "./reclaim.js";
import { Removals } from "./removals.js";
import { type OpenSearchIndex, openSearchIndex } from "./search.js";
import { TaskList } from "./task-list.js";
import { Undo } from "./undo.js";

export interface StoreParts {
  /** Open, set up and migrated. The store closes it. */
  readonly db: Database;
  readonly tableSets: readonly TableSet[];
  readonly clock: Clock;
  readonly loop: Loop;
  readonly writerLimits: Partial<WriterLimits>;
  readonly cachedJournals: number;
  /** Number of journal rows, and of tasks, that wait in memory for their index. */
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
  /** Pages of removed rows that `reclaim` would free. */
  readonly freePages: number;
}

/** Characters of journals after which `readMany` stops, so that memory and the event loop are not held up. */
const READ_AT_ONCE = 4 * 1024 * 1024;

/** How long `close` waits for a store that cannot be written. */
const CLOSING_PATIENCE = 5_000;

/** SQLite returns a number for these pragmas. */
const SYNCHRONOUS = ["off", "normal", "full", "extra"];
const AUTO_VACUUM = ["none", "full", "incremental"];

/**
 * The store over one connection. Everything runs on the calling thread: a read returns exactly what was committed when
 * it was called, and never sees part of a transaction.
 */
export class SqliteStore implements FullStore {
  readonly writer: Writer;
  /** What the writer writes with; for programs that need their own writer over the same data. */
  readonly driver: StoreDriver;
  readonly tasks: TaskReads;
  readonly tokens: TokenReads;
  readonly http: HttpStore;
  readonly a2a: A2aStore;
  readonly outbox: OutboxReads;
  readonly federation: FederationReads;
  readonly conversations: ConversationReads;
  readonly mesh: MeshReads;
  readonly memory: KeyValueStore;
  readonly approvals: ApprovalReads;
  readonly usage: UsageReads;
  readonly #db: Database;
  readonly #journals: Journals;
  readonly #removals: Removals;
  readonly #foreign: ForeignWrites;
  readonly #groups: SqliteGroups;
  readonly #clock: Clock;
  readonly #release: () => void;
  readonly #snapshotNumber;
  readonly #snapshotParts;
  #sweeping: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #search: OpenSearchIndex | undefined;

  constructor(parts: StoreParts) {
    const { db, tableSets, clock, loop, writerLimits, indexBatch } = parts;
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
    const handlers = new Map<string, PreparedWrite>();
    for (const tableSet of tableSets) {
      for (const [kind, handler] of tableSet.prepareWrites({ db, journals, removals, taskList })) {
        if (handlers.has(kind)) throw new Error(`two table sets declare the write "${kind}"`);
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
      stopwatch: () => performance.now(),
    });
    this.#snapshotNumber = db
      .prepare<[number], number>("SELECT number FROM snapshots WHERE journal = ?")
      .pluck();
    this.#snapshotParts = db.prepare<[number], SnapshotPart>(
      "SELECT name, data FROM snapshot_parts WHERE journal = ? ORDER BY name",
    );
    this.tasks = createTaskReads(db, { taskList, loop, ready: () => this.#ready() });
    this.approvals = createApprovalReads(db, this.tasks, () => this.#ready());
    this.usage = createUsageReads(db, () => this.#ready());
    const assertOpen = () => this.#assertOpen();
    this.tokens = createTokenReads(db, assertOpen);
    this.http = createHttpStore(db, assertOpen);
    this.a2a = createA2aStore(db, assertOpen);
    this.outbox = createOutboxReads(db, assertOpen);
    this.federation = createFederationReads(db, assertOpen);
    this.conversations = createConversationReads(db, assertOpen);
    this.mesh = createMeshReads(db, assertOpen);
    this.memory = createKeyValueStore({
      db,
      assertOpen,
      commit: (write) => this.commit({ appends: [], rows: [write] }, "result"),
      now: Date.now,
    });
    this.#finishRemovals();
  }

  commit(batch: Batch, kind?: "post" | "result"): Promise<Committed> {
    if (this.#closing !== undefined) return Promise.reject(storeClosed());
    const invalid = this.#groups.invalid(batch);
    return invalid === undefined ? this.writer.commit(batch, kind) : Promise.reject(invalid);
  }

  async read(
    journal: JournalKey,
    { after = 0, limit, characters }: { after?: number; limit?: number; characters?: number } = {},
  ): Promise<JournalRow[]> {
    this.#ready();
    return this.#journals.read(journal, after, limit, characters);
  }

  async readMany(journals: readonly JournalKey[]): Promise<readonly StoredJournal[]> {
    this.#ready();
    const stored: StoredJournal[] = [];
    let characters = 0;
    for (const journal of journals) {
      const snapshot = this.#readSnapshot(journal);
      const rows = this.#journals.read(journal, snapshot?.number ?? 0, undefined, READ_AT_ONCE);
      const size = sizeOf(rows);
      stored.push({ journal, snapshot, rows, ...(size >= READ_AT_ONCE && { more: true }) });
      characters += sizeOf(snapshot?.parts ?? []) + size;
      if (characters >= READ_AT_ONCE) break;
    }
    return stored;
  }

  async readAll(afterPosition: number, limit: number, characters?: number): Promise<JournalRow[]> {
    this.#ready();
    return this.#journals.readAll(afterPosition, limit, characters);
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
   * Returns the space of removed tasks to the file system, in small steps between which other work runs. Call it after
   * retention.
   */
  async reclaim(): Promise<Reclaimed> {
    this.#assertOpen();
    await this.#sweeping;
    if (this.writer.failure !== undefined) throw this.writer.failure;
    return reclaimSpace(this.#db, () => this.#closing === undefined && this.writer.failure === undefined);
  }

  /** The connection's actual settings and the file's size, for diagnosis and tests. */
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

  /** Rejects new batches, writes those that wait, then closes the database and releases the lock. */
  size(): { readonly store: number; readonly wal: number } {
    const { name } = this.#db;
    const bytes = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    return { store: bytes(name), wal: bytes(`${name}-wal`) };
  }

  searchIndex(): OpenSearchIndex {
    this.#assertOpen();
    this.#search ??= openSearchIndex(searchPath(this.#db.name));
    return this.#search;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#drained();
    this.writer.close();
    try {
      this.#search?.close();
      this.#db.close();
    } finally {
      this.#release();
    }
  }

  /** Waits without limit for a slow store, but only for a limited time for one that cannot be written. */
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

  /** Finishes the removal of journals, step by step and behind batches that already wait. */
  #finishRemovals(): void {
    if (this.#sweeping !== undefined || !this.#removals.unfinished) return;
    const step: JournalSweep = { kind: "journal.sweep" };
    const sweep = async (): Promise<void> => {
      while (this.#removals.unfinished && this.#closing === undefined) {
        await this.writer.commit({ appends: [], rows: [step] }, "result");
      }
    };
    // The next process that opens the store repeats a failed step.
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

  /** Called before a read that uses cached state. */
  #ready(): void {
    this.#assertOpen();
    this.#foreign.check();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw storeClosed();
  }
}

function sizeOf(texts: readonly { readonly data: string }[]): number {
  let size = 0;
  for (const { data } of texts) size += data.length;
  return size;
}

/** Beside the data, under a name of its own. */
function searchPath(file: string): string {
  if (file === ":memory:" || file === "") return ":memory:";
  return join(dirname(file), basename(file) === "mailroom.db" ? "search.db" : `${basename(file)}.search`);
}

/**
 * The journal of the task that is open. It is read from its end, so that a long one is there at once, then from its
 * beginning; new entries come from the feed. Entries are in one array without gaps.
 */
import { signal } from "@preact/signals";
import { type WrittenText, WrittenTexts } from "../../base/index.js";
import type { JournalEntry } from "../model/journal-entry.js";
import { type LanesModel, lanesOf } from "../model/lanes.js";
import { Travel } from "../model/travel.js";
import { principalOf } from "../model/words.js";
import { ApiError, request } from "./api.js";
import { onFeed, watch } from "./feed.js";
import type { FeedEvents, JournalPage, Status } from "./shapes.js";

export interface TaskHead {
  readonly key: string;
  readonly taskId: string;
  readonly owner: string;
  readonly title: string;
}

const PAGE = 1_000;
const TAIL = 400;
/** Entries that are applied before the page gets to draw again. */
const SLICE = 2_000;

export class OpenTask {
  readonly head = signal<TaskHead | undefined>(undefined);
  readonly status = signal<Status>("running");
  readonly error = signal<Error | undefined>(undefined);
  /** Rises when entries came. */
  readonly version = signal(0);
  /** Retention removed it; what was read stays. */
  readonly removed = signal(false);
  /** What agents are writing right now. */
  readonly writing = signal<readonly WrittenText[]>([]);
  /** Agents that work now, as far as the feed told. */
  readonly doing = signal<readonly string[]>([]);
  /** The last number of the journal, known or not. */
  last = 0;
  entries: JournalEntry[] = [];
  lanes: LanesModel = lanesOf();
  travel = new Travel();

  readonly #texts = new WrittenTexts();
  readonly #path: string;
  #closed = false;
  #filling: Promise<void> | undefined;
  #again = false;
  readonly #stop: (() => void)[] = [];
  /** Events of the feed that came before the task was read; undefined since then. */
  #early: (() => void)[] | undefined = [];

  constructor(id: string, byKey: boolean) {
    this.#path = byKey
      ? `admin/tasks/${encodeURIComponent(id)}/journal`
      : `tasks/${encodeURIComponent(id)}/journal`;
    this.#stop.push(
      this.#on("entries", ({ key, first, entries }) => {
        if (key !== this.head.value?.key) return;
        for (const entry of entries) {
          if (entry.t === "turn" || entry.t === "turn_failed") this.#endWriting(entry.agent);
        }
        this.#arrived(first, entries);
      }),
      this.#on("hello", () => {
        // Of another connection, perhaps of a server that has ended.
        this.#endWriting();
        void this.fill();
      }),
      this.#on("reset", () => void this.fill()),
      this.#on("removed", ({ key }) => {
        if (key === this.head.value?.key) this.removed.value = true;
      }),
      this.#on("task", (task) => {
        if (task.key !== this.head.value?.key) return;
        this.doing.value = task.doing;
        if (task.number > this.last) void this.fill();
      }),
      this.#on("token", (token) => {
        if (token.key !== this.head.value?.key) return;
        this.#texts.add(token);
        this.writing.value = this.#texts.all;
      }),
    );
    watch(id);
    void this.#open();
  }

  #on<Name extends keyof FeedEvents>(name: Name, take: (data: FeedEvents[Name]) => void): () => void {
    return onFeed(name, (data) => {
      if (this.#early === undefined) take(data);
      else this.#early.push(() => take(data));
    });
  }

  /** Whether the entries begin with the first one. */
  get whole(): boolean {
    return this.entries[0]?.n === 1;
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#stop) stop();
    watch(undefined);
  }

  async #open(): Promise<void> {
    try {
      const page = await request<JournalPage>(this.#path, {
        query: { before: Number.MAX_SAFE_INTEGER, limit: TAIL },
      });
      if (this.#closed) return;
      this.#facts(page);
      this.#begin([...page.entries]);
      const early = this.#early ?? [];
      this.#early = undefined;
      for (const take of early) take();
      if (page.more) await this.#front(page.entries[0]?.n ?? 1);
    } catch (error) {
      this.#early = undefined;
      if (!this.#closed && !(error instanceof ApiError && error.status === 401)) {
        this.error.value = error instanceof Error ? error : new Error(String(error));
      }
    }
  }

  #facts(page: JournalPage): void {
    const title = page.title ?? "";
    this.head.value = { key: page.key, taskId: page.task_id, owner: page.task_owner, title };
    this.status.value = page.status;
  }

  /** Everything before the tail, then the models once more from the beginning. */
  async #front(until: number): Promise<void> {
    const front: JournalEntry[] = [];
    for (let after = 0; after < until - 1; ) {
      const page: JournalPage = await request<JournalPage>(this.#path, { query: { after, limit: PAGE } });
      if (this.#closed) return;
      const fresh = page.entries.filter(({ n }) => n < until);
      if (fresh.length === 0) break;
      for (const entry of fresh) front.push(entry);
      after = fresh.at(-1)?.n ?? until;
    }
    const entries = [...front, ...this.entries];
    const lanes = lanesOf();
    const travel = new Travel();
    for (let at = 0; at < entries.length; at += SLICE) {
      const slice = entries.slice(at, at + SLICE);
      lanes.extend(slice);
      travel.extend(slice);
      await new Promise((resolve) => setTimeout(resolve, 0));
      if (this.#closed) return;
    }
    // The feed went on meanwhile.
    const newer = this.entries.filter(({ n }) => n > (entries.at(-1)?.n ?? 0));
    lanes.extend(newer);
    travel.extend(newer);
    this.entries = [...entries, ...newer];
    this.lanes = lanes;
    this.travel = travel;
    this.version.value++;
  }

  #begin(entries: JournalEntry[]): void {
    this.entries = entries;
    this.last = entries.at(-1)?.n ?? 0;
    const head = this.head.value;
    this.lanes = lanesOf(entries, head === undefined ? {} : { owner: principalOf(head.owner) });
    this.travel = new Travel();
    this.travel.extend(entries);
    this.version.value++;
  }

  #arrived(first: number, entries: readonly JournalEntry[]): void {
    if (this.entries.length === 0) return;
    if (first > this.last + 1) {
      void this.fill();
      return;
    }
    const fresh = entries.filter(({ n }) => n > this.last);
    if (fresh.length === 0) return;
    for (const entry of fresh) {
      this.entries.push(entry);
      this.last = entry.n;
    }
    this.lanes.extend(fresh);
    this.travel.extend(fresh);
    this.#note(fresh);
    this.version.value++;
  }

  #note(entries: readonly JournalEntry[]): void {
    for (const entry of entries) {
      if (entry.t === "paused") this.status.value = "paused";
      else if (entry.t === "completed" || entry.t === "failed" || entry.t === "cancelled")
        this.status.value = entry.t;
      else if (entry.t === "resumed") this.status.value = "running";
    }
  }

  #endWriting(agent?: string): void {
    if (this.writing.value.length === 0) return;
    this.#texts.end(agent);
    this.writing.value = this.#texts.all;
  }

  /** Reads what follows on the last known entry. */
  fill(): Promise<void> {
    if (this.entries.length === 0) return Promise.resolve();
    this.#again = true;
    this.#filling ??= this.#fillAll().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  async #fillAll(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false;
      try {
        const page = await request<JournalPage>(this.#path, { query: { after: this.last, limit: PAGE } });
        if (this.#closed) return;
        this.#facts(page);
        if (page.entries[0] !== undefined) this.#arrived(page.entries[0].n, page.entries);
        if (page.more) this.#again = true;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) this.removed.value = true;
        return;
      }
    }
  }
}

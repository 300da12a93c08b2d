/**
 * The tasks in memory. Memory follows what is running: of the tasks that rest only the latest stay, and the others
 * are read from the store when they are asked for. There is never more than one picture of a task.
 */
import type { InstanceId, JournalKey, SnapshotPut, Store } from "../ports.js";
import { freeze } from "../snapshot.js";
import { describe } from "./actions.js";
import { instanceKey, type Problem } from "./core.js";
import { LiveTask } from "./live-task.js";
import { loadTask } from "./loader.js";

export interface ShelfParts {
  readonly store: Store;
  readonly limits: { readonly restingTasks: number; readonly snapshotAfter: number };
  /** A task came into memory from the store: what was going on in it is taken up, here and nowhere else. */
  readonly onLoaded: (task: LiveTask) => void;
  /** Whether somebody waits for this task, so that it stays. */
  readonly isAwaited: (key: JournalKey) => boolean;
  readonly report: (problem: Problem) => void;
}

export class Shelf {
  readonly #parts: ShelfParts;
  readonly #live = new Map<JournalKey, LiveTask>();
  readonly #byTaskId = new Map<string, LiveTask>();
  readonly #loading = new Map<string, Promise<LiveTask | undefined>>();
  readonly #resting = new Set<LiveTask>();

  constructor(parts: ShelfParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#live.size;
  }

  tasks(): Iterable<LiveTask> {
    return this.#live.values();
  }

  /** The task if it is in memory. */
  peek(key: JournalKey): LiveTask | undefined {
    return this.#live.get(key);
  }

  async get(key: JournalKey): Promise<LiveTask | undefined> {
    return this.#live.get(key) ?? (await this.#load(key));
  }

  /** A task that cannot be read is reported and keeps no other one from running. */
  async tryLoad(key: JournalKey): Promise<void> {
    if (this.#live.has(key)) return;
    try {
      await this.#load(key);
    } catch (cause) {
      this.#parts.report({ code: "load_failed", message: describe(cause), task: key, cause });
    }
  }

  async keyOf(instance: InstanceId, taskId: string): Promise<JournalKey | undefined> {
    const live = this.#byTaskId.get(nameOf(instance, taskId));
    return live?.key ?? (await this.#parts.store.tasks.find(instance, taskId))?.key;
  }

  /** The instance's task of this id, or a reservation of the id so that two callers cannot both open it. */
  async findOrReserve(instance: InstanceId, taskId: string): Promise<LiveTask | (() => void)> {
    const name = nameOf(instance, taskId);
    for (;;) {
      const live = this.#byTaskId.get(name);
      if (live !== undefined) return live;
      const under = this.#loading.get(name);
      if (under === undefined) break;
      await under;
    }
    let release = () => {};
    const reserved = new Promise<undefined>((resolve) => {
      release = () => {
        this.#loading.delete(name);
        resolve(undefined);
      };
    });
    this.#loading.set(name, reserved);
    try {
      const row = await this.#parts.store.tasks.find(instance, taskId);
      if (row === undefined) return release;
      const task = await this.get(row.key);
      release();
      return task ?? (() => {});
    } catch (error) {
      release();
      throw error;
    }
  }

  add(task: LiveTask): void {
    this.#live.set(task.key, task);
    this.#byTaskId.set(nameOf(task.state.instance, task.state.taskId), task);
  }

  /**
   * The one picture of the task that counts. Between finding it and using it, it may have been evicted, and another
   * one may have been loaded: two of them would write past each other.
   */
  current(found: LiveTask): LiveTask {
    const live = this.#live.get(found.key);
    if (live !== undefined || found.lost) return live ?? found;
    this.add(found);
    return found;
  }

  /** Something is going on in the task again. */
  wake(task: LiveTask): void {
    this.#resting.delete(task);
  }

  forget(task: LiveTask): void {
    task.cancelTimers();
    if (this.#live.get(task.key) === task) this.#live.delete(task.key);
    this.#resting.delete(task);
    const name = nameOf(task.state.instance, task.state.taskId);
    if (this.#byTaskId.get(name) === task) this.#byTaskId.delete(name);
  }

  /** Lets go of the task that has rested longest, if this one rests and there are too many. */
  rest(task: LiveTask): void {
    if (task.lost || task.state.status === "running" || !task.resting) return;
    // Somebody may hold on to a picture that has left memory; the one that counts is not its business.
    if (this.#live.get(task.key) !== task || this.#parts.isAwaited(task.key)) return;
    this.#resting.delete(task);
    this.#resting.add(task);
    if (this.#resting.size <= this.#parts.limits.restingTasks) return;
    const [oldest] = this.#resting;
    if (oldest === undefined) return;
    if (!oldest.resting) {
      this.#resting.delete(oldest);
      return;
    }
    this.forget(oldest);
    if (oldest.state.number - oldest.snapshotAt >= this.#parts.limits.snapshotAfter) this.#snapshot(oldest);
  }

  /** A long journal gets a snapshot whenever it has doubled: out of band, never per message (decisions B13). */
  snapshotIfLong(task: LiveTask): void {
    const { number } = task.state;
    const due = Math.max(this.#parts.limits.snapshotAfter, Math.floor(number / 2));
    if (number - task.snapshotAt >= due && task.uncommitted === 0) this.#snapshot(task);
  }

  #snapshot(task: LiveTask): void {
    const { number } = task.state;
    task.snapshotAt = number;
    const row: SnapshotPut = { kind: "snapshot.put", journal: task.key, number, data: freeze(task.state) };
    this.#parts.store.commit({ appends: [], rows: [row] }).catch((cause: unknown) => {
      this.#parts.report({ code: "snapshot_failed", message: describe(cause), task: task.key, cause });
    });
  }

  #load(key: JournalKey): Promise<LiveTask | undefined> {
    const under = this.#loading.get(key);
    if (under !== undefined) return under;
    const loading = loadTask(this.#parts.store, key)
      .then((loaded) => {
        const live = this.#live.get(key);
        if (live !== undefined || loaded === undefined) return live;
        const { state, snapshotAt } = loaded;
        const task = new LiveTask(state, state.status, state.number, snapshotAt);
        this.add(task);
        this.#parts.onLoaded(task);
        this.rest(task);
        return task;
      })
      .finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return loading;
  }
}

function nameOf(instance: InstanceId, taskId: string): string {
  return `${instanceKey(instance)}\n${taskId}`;
}

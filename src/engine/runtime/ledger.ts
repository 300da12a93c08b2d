/**
 * The way of everything that happens: the engine decides, the entries are committed, and only then they are told and
 * acted on (law 1).
 */
import type { Command, Decision, Moment, OpenTask } from "../commands.js";
import { decide, openTask } from "../decide.js";
import type { Entry } from "../entries.js";
import {
  type Bus,
  type Clock,
  type Ids,
  type RowWrite,
  StaleAppendError,
  type Store,
  type TaskPut,
} from "../ports.js";
import type { SwarmRules } from "../rules.js";
import { describe } from "./actions.js";
import { beingReadAgain, RuntimeError, refused } from "./errors.js";
import { ALL_TASKS_CHANNEL, type CommitNote } from "./follow.js";
import type { HeadCount } from "./head-count.js";
import { LiveTask } from "./live-task.js";
import type { Shelf } from "./shelf.js";

export interface LedgerParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly shelf: Shelf;
  readonly heads: HeadCount;
  readonly rules: () => SwarmRules;
  /** What is to be durable together with mail that leaves the swarm. */
  readonly carriedRows: (task: LiveTask, entries: readonly Entry[]) => readonly RowWrite[];
  /** The entries are durable. */
  readonly act: (task: LiveTask, entries: readonly Entry[]) => void;
  /** A commit failed, or a decision broke off: this picture of the task is worthless. */
  readonly lose: (task: LiveTask, error: unknown) => void;
}

/** What was decided, and a promise that resolves when it is durable and acted on. */
export interface Applied {
  readonly decision: Decision;
  readonly promise: Promise<void>;
}

const LOST: Decision = {
  ok: false,
  refusal: { code: "stale_turn", message: "the task is being read again" },
};
const NOTHING_TO_DO = Promise.resolve();
const NO_ROWS: readonly RowWrite[] = [];

export class Ledger {
  readonly #parts: LedgerParts;
  readonly #newId: () => string;
  #lastMoment: Moment;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#newId = () => parts.ids.uuid();
    this.#lastMoment = { at: -1, timestamp: "", id: this.#newId };
  }

  /** Most moments share their millisecond with others, and formatting one costs as much as deciding. */
  moment(): Moment {
    const at = this.#parts.clock.now();
    if (at !== this.#lastMoment.at) {
      this.#lastMoment = { at, timestamp: new Date(at).toISOString(), id: this.#newId };
    }
    return this.#lastMoment;
  }

  /**
   * Opens a task. Resolves when it is durable.
   * @throws RuntimeError what the engine refuses, or `overloaded`
   */
  open(command: OpenTask, moment: Moment, title: string, rows: readonly RowWrite[]): Promise<void> {
    const { shelf, heads } = this.#parts;
    const { instance } = command.task;
    heads.assertRoom(instance);
    const decision = openTask(command, this.#parts.rules(), moment);
    if (!decision.ok) throw refused(decision.refusal);
    const task = new LiveTask(decision.state, decision.state.status, 0);
    shelf.add(task);
    heads.count(instance, 1);
    try {
      return this.#commit(task, decision.entries, [rowOf(task, title), ...rows]);
    } catch (error) {
      this.#parts.lose(task, error);
      throw notWritten(error);
    }
  }

  apply(
    task: LiveTask,
    command: Command,
    rows: readonly RowWrite[] = NO_ROWS,
    onCommitted?: () => void,
  ): Applied {
    if (task.lost) return { decision: LOST, promise: NOTHING_TO_DO };
    const before = task.state.status;
    const decision = this.#decide(task, command);
    if (!decision.ok || decision.entries.length === 0) {
      onCommitted?.();
      return { decision, promise: NOTHING_TO_DO };
    }
    const { status, instance } = task.state;
    if (before !== status) {
      if (before === "running") this.#parts.heads.count(instance, -1);
      else if (status === "running") this.#parts.heads.count(instance, 1);
    }
    const changed = task.storedStatus !== status;
    const all = changed ? [rowOf(task), ...rows] : rows;
    if (changed) task.storedStatus = status;
    try {
      const promise = this.#commit(task, decision.entries, all, onCommitted);
      promise.catch(() => {});
      return { decision, promise };
    } catch (error) {
      // What agents and actions hand over may be no JSON (a BigInt, a circle). It is never written, so it did not happen.
      this.#parts.lose(task, error);
      onCommitted?.();
      return { decision: LOST, promise: NOTHING_TO_DO };
    }
  }

  /** @throws RuntimeError when the engine refuses. The number is that of the first entry. */
  applyOrThrow(
    found: LiveTask,
    command: Command,
    rows?: readonly RowWrite[],
  ): { readonly promise: Promise<void>; readonly number: number } {
    const { shelf } = this.#parts;
    const task = shelf.current(found);
    if (task.lost) throw beingReadAgain();
    const number = task.state.number + 1;
    const { decision, promise } = this.apply(task, command, rows);
    if (!decision.ok) {
      shelf.rest(task);
      throw decision === LOST ? beingReadAgain() : refused(decision.refusal);
    }
    return { promise, number };
  }

  /** Resolves when what was on its way for the task is durable. */
  async committed(task: LiveTask): Promise<void> {
    // Batches take effect in the order of the calls: an empty one is done when everything before it is.
    await this.#parts.store.commit({ appends: [] });
    if (task.uncommitted > 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  /** A mistake in the engine must not leave half a decision behind: the picture is thrown away with it. */
  #decide(task: LiveTask, command: Command): Decision {
    try {
      return decide(task.state, command, this.#parts.rules(), this.moment());
    } catch (error) {
      this.#parts.lose(task, error);
      return LOST;
    }
  }

  #commit(
    task: LiveTask,
    entries: readonly Entry[],
    rows: readonly RowWrite[],
    onCommitted?: () => void,
  ): Promise<void> {
    const { store, shelf, carriedRows, act, lose } = this.#parts;
    const expected = task.state.number - entries.length;
    const append = { journal: task.key, expected, count: entries.length, data: JSON.stringify(entries) };
    const carried = carriedRows(task, entries);
    task.uncommitted++;
    shelf.wake(task);
    const all = carried.length === 0 ? rows : [...rows, ...carried];
    const batch = all.length === 0 ? { appends: [append] } : { appends: [append], rows: all };
    return store.commit(batch).then(
      () => {
        task.uncommitted--;
        this.#publish(task, entries, expected + 1);
        if (task.lost) return;
        task.committed = expected + entries.length;
        onCommitted?.();
        act(task, entries);
      },
      (error: unknown) => {
        task.uncommitted--;
        lose(task, error);
        onCommitted?.();
        throw error instanceof StaleAppendError || !(error instanceof Error) ? notWritten(error) : error;
      },
    );
  }

  /** What is durable is told, whatever has become of our picture of the task since. */
  #publish(task: LiveTask, entries: readonly Entry[], first: number): void {
    const note: CommitNote = { key: task.key, first, entries };
    this.#parts.bus.publish(task.channel, note);
    this.#parts.bus.publish(ALL_TASKS_CHANNEL, note);
  }
}

function rowOf({ state }: LiveTask, title?: string): TaskPut {
  const { key, instance, taskId, owner, status, createdAt, updatedAt } = state;
  const row = { key, instance, taskId, owner, status, createdAt, updatedAt };
  return { kind: "task.put", row: title === undefined ? row : { ...row, title } };
}

export function notWritten(cause: unknown): RuntimeError {
  return new RuntimeError("store_failure", `the task could not be written: ${describe(cause)}`, { cause });
}

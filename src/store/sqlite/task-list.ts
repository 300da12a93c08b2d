import type { InstanceId } from "../../engine/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { Database } from "./driver.js";
import type { Undo } from "./undo.js";

/** Every task up to this number is in the table. */
const LISTED = "listed";

interface Opened {
  readonly role: string;
  readonly instance: string;
  readonly key: string;
}

const UNLISTED = `SELECT role, instance, key FROM tasks
    WHERE id > ifnull((SELECT value FROM counters WHERE name = '${LISTED}'), 0)`;

/** The queries by name, so that a test can check their plans. */
export const TASK_LIST_QUERIES = {
  newestTask: `SELECT max(
      ifnull((SELECT max(id) FROM tasks), 0),
      ifnull((SELECT value FROM counters WHERE name = '${LISTED}'), 0)
    )`,
  unlistedTasks: `${UNLISTED} ORDER BY id`,
  inOrder: `${UNLISTED} ORDER BY role, instance, key`,
} as const;

/**
 * The tasks of each instance. The table is written in sorted batches, and tasks opened since the last batch are cached:
 * with many users, each task would otherwise write a log page of its own.
 */
export class TaskList {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #undo: Undo;
  readonly #batch: number;
  #unlisted = new Map<string, Opened[]>();
  #size = 0;
  #newest = 0;

  constructor(db: Database, undo: Undo, batch: number) {
    this.#sql = prepareStatements(db);
    this.#undo = undo;
    this.#batch = batch;
    this.reload();
  }

  reload(): void {
    this.#newest = this.#sql.newestTask.get() ?? 0;
    this.#unlisted = new Map();
    this.#size = 0;
    for (const opened of this.#sql.unlistedTasks.all()) this.#keep(opened);
  }

  /** At the start of a transaction: writes the table if enough tasks wait for it. */
  write(): void {
    if (this.#size < this.#batch) return;
    const before = { unlisted: this.#unlisted, size: this.#size };
    this.#sql.list.run();
    this.#sql.setCounter.run(LISTED, this.#newest);
    this.#unlisted = new Map();
    this.#size = 0;
    this.#undo.push(() => {
      this.#unlisted = before.unlisted;
      this.#size = before.size;
    });
  }

  /** The number of the next task. Numbers are never reused, not even those of removed tasks. */
  nextNumber(): number {
    return ++this.#newest;
  }

  add({ role, id: instance }: InstanceId, key: JournalKey): void {
    const opened = { role, instance, key };
    this.#keep(opened);
    this.#undo.push(() => this.#forget(opened));
  }

  remove(opened: Opened): void {
    this.#sql.unlist.run(opened.role, opened.instance, opened.key);
    if (this.#forget(opened)) this.#undo.push(() => this.#keep(opened));
  }

  /** Keys of an instance's tasks that are not in the table, in no order. */
  unlisted({ role, id }: InstanceId): string[] {
    return (this.#unlisted.get(nameOf(role, id)) ?? []).map(({ key }) => key);
  }

  #keep(opened: Opened): void {
    const name = nameOf(opened.role, opened.instance);
    const others = this.#unlisted.get(name);
    if (others === undefined) this.#unlisted.set(name, [opened]);
    else others.push(opened);
    this.#size++;
  }

  #forget({ role, instance, key }: Opened): boolean {
    const name = nameOf(role, instance);
    const tasks = this.#unlisted.get(name) ?? [];
    const rest = tasks.filter((task) => task.key !== key);
    if (rest.length === tasks.length) return false;
    if (rest.length === 0) this.#unlisted.delete(name);
    else this.#unlisted.set(name, rest);
    this.#size--;
    return true;
  }
}

/** Roles contain no space. */
function nameOf(role: string, instance: string): string {
  return `${role} ${instance}`;
}

function prepareStatements(db: Database) {
  return {
    newestTask: db.prepare<[], number>(TASK_LIST_QUERIES.newestTask).pluck(),
    unlistedTasks: db.prepare<[], Opened>(TASK_LIST_QUERIES.unlistedTasks),
    list: db.prepare<[]>(`INSERT INTO task_list (role, instance, key) ${TASK_LIST_QUERIES.inOrder}`),
    unlist: db.prepare<[string, string, string]>(
      "DELETE FROM task_list WHERE role = ? AND instance = ? AND key = ?",
    ),
    setCounter: db.prepare<[string, number]>("INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)"),
  };
}

/** The tasks of a server that does not run, read from its store. Nothing in it is run or changed. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { MailEvent, TaskSummary } from "../client/index.js";
import type { Store } from "../engine/ports.js";
import { entriesOf } from "../engine/task.js";
import { eventsOf, parseEventId } from "../engine/view/events.js";
import { summaryOf } from "../engine/view/record.js";
import { openStore } from "../store/index.js";
import { CliError, EXIT } from "./exit.js";
import { findIn, type TaskDesk, take } from "./task-desk.js";

const PAGE = 200;

/** @throws CliError when nothing was ever stored there */
export async function storeDesk(data: string): Promise<TaskDesk> {
  requireData(data);
  const store = await openStore({ directory: data });
  return {
    list: async ({ status, limit }) => take(allTasks(store, status), limit),
    find: (task) => findIn(allTasks(store), task),
    events: (task, { after }) => storedEvents(store, task, after),
    cancel: () => needsServer("cancel a task"),
    answer: () => needsServer("answer a task"),
    close: () => store.close(),
  };
}

/** Looking at what is not there must not create it. */
export function requireData(data: string): void {
  if (existsSync(join(data, "mailroom.db"))) return;
  throw new CliError("no_data", `nothing is stored at ${data}`, {
    hint: "start a server first, or name its directory with --data",
  });
}

async function* allTasks(store: Store, status?: TaskSummary["status"]): AsyncGenerator<TaskSummary> {
  let cursor: string | undefined;
  do {
    const page = await store.tasks.list({
      limit: PAGE,
      ...(status !== undefined && { status }),
      ...(cursor !== undefined && { cursor }),
    });
    yield* page.tasks.map((row) => ({ ...summaryOf(row) }));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

async function* storedEvents(
  store: Store,
  task: TaskSummary,
  after: string | undefined,
): AsyncGenerator<MailEvent> {
  const from = parseEventId(after ?? "0") ?? { number: 0, index: Number.POSITIVE_INFINITY };
  let seen = Math.max(0, from.number - 1);
  for (;;) {
    const rows = await store.read(task.key ?? "", { after: seen, limit: PAGE });
    for (const row of rows) {
      for (const [offset, entry] of entriesOf(row).entries()) {
        const number = row.first + offset;
        if (number <= seen) continue;
        for (const [index, event] of eventsOf(task.task_id, number, entry).entries()) {
          if (number === from.number && index <= from.index) continue;
          yield event;
        }
      }
      seen = row.last;
    }
    if (rows.length < PAGE) return;
  }
}

async function needsServer(what: string): Promise<never> {
  throw new CliError("no_server", `to ${what} a server must run: the agents live in it`, {
    exit: EXIT.unreachable,
    hint: "start it with 'mailroom server'",
  });
}

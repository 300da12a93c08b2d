/** Reads the tasks of a stopped server from its store, without running or changing anything. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { MailroomError } from "../../base/index.js";
import type { TaskEvent, TaskSummary } from "../../client/index.js";
import type { Store } from "../../engine/index.js";
import { entriesOf, eventsOf, parseEventId, summaryOf } from "../../engine/index.js";
import { openStore } from "../../store/index.js";
import { findIn, type TaskSource, take } from "./source.js";

const PAGE = 200;

/**
 *
 * @throws MailroomError when the directory has no store
 */
export async function offlineTasks(data: string): Promise<TaskSource> {
  requireData(data);
  const store = await openStore({ directory: data });
  return {
    list: async ({ status, limit }) => take(allTasks(store, status), limit),
    find: (task) => findIn(allTasks(store), task),
    events: (task, { after }) => storedEvents(store, task, after),
    waits: async () => [],
    cancel: () => needsServer("cancel a task"),
    setBudget: () => needsServer("change the budget of a task"),
    budget: async ({ usage }) => (usage === undefined ? {} : { usage: { ...usage, agents: {} } }),
    answer: () => needsServer("answer a task"),
    as: () => {
      throw noServer("answer a task");
    },
    close: () => store.close(),
  };
}

/** Reading must not create the store. */
export function requireData(data: string): void {
  if (existsSync(join(data, "mailroom.db"))) return;
  throw new MailroomError("no_data", `no data in ${data}`, {
    details: { hint: "start a server first, or give its directory with --data" },
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
    for (const row of page.tasks) {
      const { usage, ...summary } = summaryOf(row);
      yield { ...summary, ...(usage !== undefined && { usage: { ...usage, tokens: { ...usage.tokens } } }) };
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

async function* storedEvents(
  store: Store,
  task: TaskSummary,
  after: string | undefined,
): AsyncGenerator<TaskEvent> {
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
  throw noServer(what);
}

function noServer(what: string): MailroomError {
  return new MailroomError("no_server", `a running server is required to ${what}`, {
    details: { hint: "start it with 'mailroom server'" },
  });
}

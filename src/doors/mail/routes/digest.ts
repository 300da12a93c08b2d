/** Tasks in figures, for lists. */
import type { TaskRow } from "../../../engine/index.js";
import {
  ADMINS,
  defineRoute,
  type NextTurn,
  NO_INPUT,
  type Route,
  type RouteResponse,
  USERS_AND_ADMINS,
} from "../../../extension/index.js";
import type { MailDoor } from "../door.js";
import { AdminDigestRequest, DigestRequest, TaskDigestList } from "../schemas/digest.js";
import { noteAccess } from "../task-access.js";

/** Digests of one turn. */
const AT_ONCE = 10;

export function digestRoutes({ mailroom: { store }, digests }: MailDoor): Route[] {
  /** One after another: a page of a list must not keep the server from its work. */
  async function digestsOf(
    rows: readonly (TaskRow | undefined)[],
    nextTurn: NextTurn,
  ): Promise<RouteResponse> {
    const found = [];
    for (const [at, row] of rows.entries()) {
      if (at % AT_ONCE === AT_ONCE - 1) await nextTurn();
      const digest = row === undefined ? undefined : await digests.of(row.key);
      if (digest !== undefined) found.push(digest);
    }
    return { status: 200, body: { digests: found } };
  }

  const shared = {
    ...NO_INPUT,
    method: "POST",
    description: "Reads only. Tasks that do not exist, or belong to another caller, are left out.",
    answers: { 200: { description: "The digests.", schema: TaskDigestList } },
    errors: ["overloaded"],
  } as const;
  return [
    defineRoute({
      ...shared,
      id: "digestTasks",
      path: "/tasks/digest",
      tag: "tasks",
      summary: "Show figures of the caller's tasks",
      access: USERS_AND_ADMINS,
      body: DigestRequest,
      async handle({ body, request }, caller) {
        const nextTurn = await request.reading(caller);
        const rows = await Promise.all(body.tasks.map((id) => store.tasks.find(caller.instance, id)));
        return digestsOf(rows, nextTurn);
      },
    }),
    defineRoute({
      ...shared,
      id: "adminDigestTasks",
      path: "/admin/tasks/digest",
      tag: "administration",
      summary: "Show figures of tasks of any caller",
      access: ADMINS,
      body: AdminDigestRequest,
      async handle({ body, request }, caller) {
        noteAccess(request, caller, "an admin read digests of tasks");
        const nextTurn = await request.reading(caller);
        return digestsOf(await Promise.all(body.keys.map((key) => store.tasks.byKey(key))), nextTurn);
      },
    }),
  ];
}

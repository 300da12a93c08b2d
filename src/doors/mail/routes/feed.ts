/** One stream of everything that happens in the caller's tasks, or in all. */
import { z } from "zod";
import { MailroomError } from "../../../base/index.js";
import type { InstanceId, TaskRow } from "../../../engine/index.js";
import {
  type Caller,
  defineRoute,
  formatEvent,
  NO_INPUT,
  type Route,
  USERS_AND_ADMINS,
} from "../../../extension/index.js";
import { formFor } from "../cursors.js";
import type { MailDoor } from "../door.js";
import { FeedReader } from "../feed/reader.js";
import { noteAccess } from "../task-access.js";

const flag = (description: string) => z.boolean().exactOptional().meta({ description });

const FeedQuery = z.object({
  after: z.string().min(1).max(64).exactOptional().meta({
    description: "The last `id` already seen, or the `cursor` of a journal. `Last-Event-ID` comes first.",
  }),
  watch: z.string().min(1).max(256).exactOptional().meta({
    description: "Task id of the caller, or for admins the key of a task: its entries are in the stream.",
  }),
  own: flag("For admins: only their own tasks."),
  stats: flag("For admins: a row of `GET /admin/stats` each second."),
});

export function feedRoutes(door: MailDoor): Route[] {
  const { mailroom, cursors, feed, server, state, clock } = door;
  const { store } = mailroom;

  /** @throws MailroomError `unknown_task`, also for another caller's task */
  async function watchedBy(caller: Caller, name: string): Promise<TaskRow> {
    const own = await store.tasks.find(caller.instance, name);
    const row = own ?? (caller.principal.role === "admin" ? await store.tasks.byKey(name) : undefined);
    if (row === undefined) throw new MailroomError("unknown_task", `unknown task '${name}'`);
    return row;
  }

  return [
    defineRoute({
      ...NO_INPUT,
      id: "getFeed",
      method: "GET",
      path: "/feed",
      tag: "tasks",
      summary: "Stream what happens in tasks",
      description:
        "Server-sent events, for `Accept: text/event-stream`: `hello`, `task`, `entries`, `token`, `counts`, `stats`, `swarm`, `removed`, `reset`, `ping`. A client " +
        "that was cut off continues after the last `id`. See `docs/console.md`.",
      access: USERS_AND_ADMINS,
      query: FeedQuery,
      answers: {
        200: { description: "Events until the client disconnects.", contentType: "text/event-stream" },
      },
      errors: ["bad_input", "unknown_task", "overloaded"],
      async handle({ query, request }, caller) {
        if (request.headers.accept?.toLowerCase().includes("text/event-stream") !== true) {
          throw new MailroomError("bad_request", "this is a stream: send 'accept: text/event-stream'");
        }
        const isAdmin = caller.principal.role === "admin";
        const instance: InstanceId | undefined = isAdmin && query.own !== true ? undefined : caller.instance;
        const row = query.watch === undefined ? undefined : await watchedBy(caller, query.watch);
        if (row !== undefined) request.taskKey = row.key;
        const header = request.headers["last-event-id"];
        const cursor = typeof header === "string" && header !== "" ? header : query.after;
        const after = cursor === undefined ? undefined : (cursors.decode(caller, cursor) ?? "unknown");
        if (instance === undefined)
          noteAccess(request, caller, "an admin opened the feed of all tasks", row?.key);
        let reader: FeedReader | undefined;
        const ping = () => ({ event: "ping", id: reader?.cursor, data: { at: clock.now() } });
        return request.stream(caller, ping, async (stream) => {
          reader = new FeedReader({
            hub: feed,
            store,
            cursors,
            stream,
            form: formFor(caller),
            instance,
            watched: row?.key,
            stats: isAdmin && query.stats === true,
          });
          await reader.run(after, (place) =>
            formatEvent({
              event: "hello",
              data: {
                cursor: cursors.encode(caller, place),
                version: server.version,
                started_at: state.startedAt,
                swarm: mailroom.swarm.name,
                definition: mailroom.swarm.hash,
                caller: { role: caller.principal.role, id: caller.principal.id },
                dev: server.dev,
              },
            }),
          );
        });
      },
    }),
  ];
}

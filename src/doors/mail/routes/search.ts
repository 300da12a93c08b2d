/** Search in messages, results and answers. */
import { z } from "zod";
import { MailroomError } from "../../../base/index.js";
import { defineRoute, NO_INPUT, type Route, USERS_AND_ADMINS } from "../../../extension/index.js";
import type { MailDoor } from "../door.js";
import { noteAccess } from "../task-access.js";

const SearchQuery = z.object({
  q: z.string().min(1).max(500).meta({
    description: "Words that must all occur; the last one may be a prefix.",
  }),
  kind: z.string().min(1).max(50).exactOptional().meta({ description: "Only entries of this kind." }),
  agent: z
    .string()
    .min(1)
    .max(256)
    .exactOptional()
    .meta({ description: "Only what this agent sent or received." }),
  since: z.iso.datetime({ offset: true }).exactOptional(),
  limit: z.int().min(1).max(100).exactOptional().meta({ description: "Default 50." }),
  own: z.boolean().exactOptional().meta({ description: "For admins: only their own tasks." }),
});

const SearchPage = z
  .object({
    hits: z
      .array(
        z.object({
          key: z.string(),
          task_id: z.string(),
          task_owner: z.string(),
          title: z.string().nullable(),
          n: z.int().meta({ description: "Number of the entry." }),
          kind: z.string(),
          at: z.number(),
          from: z.string().nullable(),
          to: z.string().nullable(),
          snippet: z.string().meta({ description: "Matches are enclosed in U+0001 and U+0002." }),
        }),
      )
      .meta({ description: "Newest first." }),
    complete: z.boolean().meta({ description: "Whether everything that was committed has been searched." }),
    progress: z.number().meta({ description: "The recovered share: 0 to 1." }),
  })
  .meta({ id: "SearchPage" });

/** As the index separates words. */
function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}]+/gu)?.slice(0, 20) ?? [];
}

export function searchRoutes({ mailroom, search }: MailDoor): Route[] {
  if (search === undefined) return [];
  return [
    defineRoute({
      ...NO_INPUT,
      id: "search",
      method: "GET",
      path: "/search",
      tag: "tasks",
      summary: "Search messages and answers",
      description:
        "The caller's tasks, for admins all. The index is brought up to date by the search; `complete` says whether it is.",
      access: USERS_AND_ADMINS,
      query: SearchQuery,
      answers: { 200: { description: "The matches.", schema: SearchPage } },
      errors: ["overloaded"],
      async handle({ query, request }, caller) {
        const { q, kind, agent, since, limit = 50, own } = query;
        const words = wordsOf(q);
        if (words.length === 0) {
          throw new MailroomError("bad_request", "q must contain a word", { details: { field: "q" } });
        }
        const isAdmin = caller.principal.role === "admin" && own !== true;
        if (isAdmin) noteAccess(request, caller, "an admin searched all tasks");
        const nextTurn = await request.reading(caller);
        const { found, complete, progress } = await search.find(
          {
            words,
            limit,
            ...(!isAdmin && { instance: caller.instance }),
            ...(kind !== undefined && { kind }),
            ...(agent !== undefined && { agent }),
            ...(since !== undefined && { since: Date.parse(since) }),
          },
          nextTurn,
        );
        const hits = [];
        for (const { key, number, ...hit } of found) {
          const row = await mailroom.store.tasks.byKey(key);
          if (row === undefined) search.forget(key);
          else {
            const { taskId: task_id, owner: task_owner, title = null } = row;
            hits.push({ key, task_id, task_owner, title, n: number, ...hit });
          }
        }
        return { status: 200, body: { hits, complete, progress } };
      },
    }),
  ];
}

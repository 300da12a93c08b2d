/** Journals, counts and filters of tasks. */
import { z } from "zod";
import { Status } from "../../../extension/index.js";

export const JournalQuery = z.object({
  after: z.int().min(0).exactOptional().meta({ description: "Read forward from this number." }),
  before: z.int().min(1).exactOptional().meta({
    description: "Read backward from this number; one beyond the last reads from the end. Excludes `after`.",
  }),
  limit: z.int().min(1).max(1000).exactOptional().meta({ description: "Entries on a page. Default 1000." }),
});

const JournalEntry = z
  .looseObject({
    n: z.int().meta({ description: "The entry's number." }),
    t: z.string().meta({ description: "The entry's kind." }),
    at: z.number().meta({ description: "Milliseconds since the epoch." }),
  })
  .meta({ id: "JournalEntry", description: "A fact about a task, as it is stored." });

export const JournalPage = z
  .object({
    task_id: z.string(),
    key: z.string(),
    task_owner: z.string(),
    status: Status,
    title: z.string().nullable(),
    number: z.int().meta({ description: "The journal's last number." }),
    cursor: z.string().meta({ description: "Pass it to `GET /feed` as `after` to miss nothing." }),
    entries: z.array(JournalEntry).meta({ description: "In the order of the journal." }),
    more: z.boolean().meta({ description: "Whether more entries follow in the direction of reading." }),
  })
  .meta({ id: "JournalPage" });

export const TaskCounts = z
  .object({
    running: z.int(),
    paused: z.int(),
    completed: z.int(),
    failed: z.int(),
    cancelled: z.int(),
  })
  .meta({ id: "TaskCounts", description: "Number of tasks, by status." });

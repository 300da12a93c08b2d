import { z } from "zod";
import { PageQuery, Status, TaskRecord } from "../../../extension/index.js";

export const TaskMap = z
  .record(z.string(), TaskRecord)
  .meta({ id: "TaskMap", description: "The reference's list of tasks: whole tasks by their id." });

const time = (description: string) => z.iso.datetime({ offset: true }).exactOptional().meta({ description });

export const TaskPageQuery = z.object({
  ...PageQuery.shape,
  status: Status.or(z.array(Status).min(1).max(5))
    .exactOptional()
    .meta({ description: "Only tasks of this status; repeat it for several." }),
  since: time("Only tasks created at this time or later."),
  until: time("Only tasks created before this time."),
  q: z.string().min(1).max(200).exactOptional().meta({
    description: "Part of the title or of the task id. A page ends after 10,000 tasks, see `scanned`.",
  }),
  agent: z
    .string()
    .min(1)
    .max(512)
    .exactOptional()
    .meta({
      description:
        "Only tasks in which this agent took part: `name`, `name@swarm`, or `@swarm` for any agent of another swarm. " +
        "A page ends after 500 tasks, see `scanned`.",
    }),
});

export const AdminTaskQuery = z.object({
  ...TaskPageQuery.shape,
  owner: z
    .string()
    .regex(/^(?:user|admin|swarm):[^\p{Cc}]{1,256}$/u)
    .exactOptional()
    .meta({ description: "Only tasks of this caller: `role:id`." }),
});

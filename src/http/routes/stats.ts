/** How the server did, for admins. */
import { z } from "zod";
import { ADMINS, defineRoute, NO_INPUT, type Route } from "../../extension/index.js";
import { STATS_COLUMNS } from "../../telemetry/index.js";
import type { HttpContext } from "../context.js";
import type { StorageFacts } from "../options.js";

const StatsQuery = z.object({
  step: z
    .enum(["1s", "1m"])
    .exactOptional()
    .meta({ description: "`1s` for 15 minutes (the default), `1m` for a day." }),
  since: z.int().min(0).exactOptional().meta({ description: "Milliseconds since the epoch." }),
});

const StatsPage = z
  .object({
    step: z.enum(["1s", "1m"]),
    columns: z
      .array(z.string())
      .meta({ description: "`at` is the beginning of the interval; times are milliseconds." }),
    rows: z.array(z.array(z.number().nullable())).meta({ description: "Oldest first." }),
    limits: z
      .record(z.string(), z.number())
      .meta({ description: "By column: the limit in force, for columns that have one." }),
    server: z
      .object({
        recovered_tasks: z.int().meta({ description: "Tasks of the last process that this one continued." }),
        durability: z.enum(["fsync", "fast", "memory"]).exactOptional().meta({
          description:
            "`fsync`: acknowledged data survives a power failure. `fast`: the end of the process. `memory`: nothing does.",
        }),
        retention: z
          .object({ tasks_ms: z.int(), tasks: z.int(), audit_ms: z.int(), usage_ms: z.int() })
          .exactOptional()
          .meta({
            description: "How long, and how many, finished tasks and records are kept. 0: all of them.",
          }),
      })
      .meta({ description: "How the server keeps data." }),
  })
  .meta({ id: "StatsPage" });

const TrafficQuery = z.object({
  window: z
    .int()
    .min(60_000)
    .max(3_600_000)
    .exactOptional()
    .meta({ description: "Milliseconds. Default 15 minutes." }),
});

const TrafficReport = z
  .object({
    since: z.number(),
    until: z.number(),
    agents: z.array(
      z.object({
        name: z.string(),
        turns: z.int(),
        failed: z.int(),
        p50: z.number().nullable(),
        p99: z.number().nullable(),
        busy: z.number().meta({ description: "Milliseconds in turns." }),
        waiting: z
          .int()
          .meta({ description: "Messages in its mailboxes now, including those that it works on." }),
        tokens: z.object({ input: z.number(), output: z.number(), cached: z.number() }),
        cost: z.number().nullable(),
        model: z.string().nullable().meta({ description: "The model of the last turn that named one." }),
      }),
    ),
    edges: z.array(
      z.object({ from: z.string(), to: z.string(), type: z.string(), messages: z.int(), failed: z.int() }),
    ),
    failures: z
      .array(
        z.object({
          agent: z.string().nullable().meta({
            description:
              "An agent, `@swarm` for a failed delivery, or null for a task that failed by itself.",
          }),
          message: z.string(),
          count: z.int(),
          last: z.number(),
          key: z.string(),
          number: z.int().meta({ description: "The last one's entry in the journal of the task `key`." }),
        }),
      )
      .meta({
        description:
          "Failed turns, actions, deliveries and tasks by agent and message, the most frequent first.",
      }),
    partial: z
      .boolean()
      .meta({ description: "Whether something was left out, because there is too much of it." }),
  })
  .meta({ id: "TrafficReport" });

export function statsRoutes({ stats, limits: http, mailroom, options: { storage } }: HttpContext): Route[] {
  const { runningTasks, turns, undurable } = mailroom.runtime.limits;
  const limits = {
    running: runningTasks,
    turns_running: turns,
    writes_waiting: undurable,
    requests_waiting: http.waits,
    streams: http.streams,
  };
  const shared = { ...NO_INPUT, method: "GET", tag: "administration", access: ADMINS } as const;
  return [
    defineRoute({
      ...shared,
      id: "adminGetStats",
      path: "/admin/stats",
      summary: "Show the server's statistics",
      query: StatsQuery,
      answers: { 200: { description: "Figures by second or minute.", schema: StatsPage } },
      async handle({ query: { step = "1s", since } }) {
        const rows = stats.rows(step, since);
        const server = {
          recovered_tasks: mailroom.recovered,
          ...(storage !== undefined && {
            durability: storage.durability,
            retention: retentionData(storage.retention),
          }),
        };
        return { status: 200, body: { step, columns: [...STATS_COLUMNS], rows, limits, server } };
      },
    }),
    defineRoute({
      ...shared,
      id: "adminGetTraffic",
      path: "/admin/traffic",
      summary: "Who wrote to whom",
      query: TrafficQuery,
      answers: { 200: { description: "Agents and messages between them.", schema: TrafficReport } },
      async handle({ query: { window = 900_000 } }) {
        return { status: 200, body: stats.traffic.read(window, mailroom.runtime.waitingMail()) };
      },
    }),
  ];
}

function retentionData({ maxAge, maxTasks, auditAge, usageAge }: StorageFacts["retention"]) {
  return { tasks_ms: maxAge, tasks: maxTasks, audit_ms: auditAge, usage_ms: usageAge };
}

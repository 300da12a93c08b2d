import type { Section } from "../declare.js";
import { whole } from "../kinds.js";

export function limitSettings(limits: Section) {
  const limit = (name: string, standard: number, doc: string) =>
    limits.setting(name, { kind: whole({ min: 1 }), default: standard, doc });
  return {
    turns: limit(
      "turns",
      1_024,
      "Turns of agents under way at once. While others wait a caller may hold a quarter of them, alone all.",
    ),
    turnsPerTask: limit("turns_per_task", 8, "The same for one task."),
    runningTasks: limit(
      "running_tasks",
      50_000,
      "Tasks that run at once; more are refused with 503. A caller may have a quarter of them while others wait.",
    ),
    runningTasksPerInstance: limit(
      "running_tasks_per_instance",
      50_000,
      "The same for one caller, whoever else waits.",
    ),
    restingTasks: limit("resting_tasks", 256, "Tasks that rest in memory until somebody writes to them."),
    mailbox: limit("mailbox", 10_000, "Messages that wait for one agent of a task."),
    resultLength: limit("result_length", 1_000_000, "Characters of an action's result that are kept."),
    connections: limit("connections", 10_000, "Connections that are open at once."),
    streamsPerCaller: limit("streams_per_caller", 100, "Event streams that one caller has open at once."),
    streamBacklog: limit(
      "stream_backlog",
      1_000,
      "Events that wait for a slow listener before it is dropped.",
    ),
    failedAuthPerMinute: limits.setting("failed_auth_per_minute", {
      kind: whole(),
      default: 20,
      doc: "Failed authentications of one address in a minute, before it gets 429; 0 for no limit.",
    }),
    requestsPerMinute: limits.setting("requests_per_minute", {
      kind: whole(),
      default: 0,
      doc: "Requests of one caller in a minute; 0 for no limit.",
    }),
    requestsPerMinutePerAddress: limits.setting("requests_per_minute_per_address", {
      kind: whole(),
      default: 0,
      doc: "Requests of one address in a minute; 0 for no limit.",
    }),
  };
}

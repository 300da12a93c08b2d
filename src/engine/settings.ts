/** Limits and timeouts of tasks. */
import {
  boolean,
  bytes,
  defineSettings,
  duration,
  durationKind,
  integer,
  isTable,
  type Kind,
  type SettingValues,
  setting,
  table,
} from "../base/index.js";
import { type BudgetLimits, budgetProblem, LIMIT_KEYS, LIMIT_NAMES } from "./usage.js";

const budgetKind: Kind<BudgetLimits> = {
  name: "a table with 'max_cost', 'max_tokens' and 'max_calls': numbers from 0, each optional",
  brief: "`max_cost`, `max_tokens`, `max_calls`",
  parse: (raw) => {
    const rejected = { problem: undefined };
    if (!isTable(raw)) return rejected;
    const limits: { -readonly [K in keyof BudgetLimits]: BudgetLimits[K] } = {};
    const left = new Map(Object.entries(raw));
    for (const name of LIMIT_NAMES) {
      const value = left.get(LIMIT_KEYS[name]);
      left.delete(LIMIT_KEYS[name]);
      if (value === undefined) continue;
      if (typeof value !== "number") return rejected;
      limits[name] = value;
    }
    return left.size > 0 || budgetProblem(limits) !== undefined ? rejected : { value: limits };
  },
  fromText: (text) => {
    const pairs = text.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
    if (pairs.some((pair) => pair.length !== 2 || pair[1] === "")) return text;
    return Object.fromEntries(pairs.map(([name = "", value = ""]) => [name, Number(value)]));
  },
  show: (limits) => {
    const pairs = LIMIT_NAMES.filter((name) => limits[name] !== undefined);
    return pairs.length === 0
      ? "none"
      : pairs.map((name) => `${LIMIT_KEYS[name]}=${limits[name]}`).join(", ");
  },
};

export const runtimeSettings = defineSettings({
  maxSteps: integer("server.settings.task_message_limit", {
    default: 15,
    // Decision B8: only the server limits steps unless it is asked for.
    library: 0,
    doc: "Steps before a task must finish; 0 means no limit.",
  }),
  repetition: integer("server.settings.repetition_limit", {
    default: 3,
    doc: "How often the same message may repeat before the task fails as a loop; 0 turns the guard off.",
  }),
  taskTimeout: duration("server.settings.task_timeout", {
    default: 0,
    doc: "Time limit for a task, from opening or resuming to its end; 0 means no limit.",
  }),
  turnTimeout: duration("server.settings.turn_timeout", {
    min: 1,
    default: "10m",
    doc: "Time limit for one agent turn.",
  }),
  actionTimeout: duration("server.settings.action_timeout", {
    min: 1,
    default: "5m",
    doc: "Time limit for an action that sets none itself.",
  }),
  approvalTimeout: duration("server.settings.approval_timeout", {
    default: 0,
    doc: "How long a call waits for its approval, unless its action sets a limit itself; 0 means no limit.",
  }),
  replyTimeout: duration("federation.reply_timeout", {
    default: "15m",
    doc: "How long to wait for another swarm's answer before notifying the sender; 0 waits forever.",
  }),
  replyTimeouts: table("federation.reply_timeouts", durationKind(), {
    default: {},
    doc: 'The same for swarms whose answers take longer or shorter, by name, such as `{ pylon = "1h" }`.',
  }),
  speculation: boolean("server.settings.speculation", {
    default: true,
    doc: "Let agents that allow it start on mail shortly before it is durable. Effects always wait for the disk.",
  }),
  turns: integer("limits.turns", {
    min: 1,
    default: 1_024,
    doc: "Agent turns running at once. While others wait, one caller can have a quarter of them.",
  }),
  turnsPerTask: integer("limits.turns_per_task", {
    min: 1,
    default: 8,
    doc: "Agent turns running at once in one task.",
  }),
  actionsPerTask: integer("limits.actions_per_task", {
    min: 1,
    default: 16,
    doc: "Actions running at once in one task. Adjacent actions of one answer run together.",
  }),
  runningTasks: integer("limits.running_tasks", {
    min: 1,
    default: 50_000,
    doc: "Tasks running at once. Further tasks are rejected with 503. While others are rejected, one caller can have a quarter of them.",
  }),
  runningTasksPerInstance: integer("limits.running_tasks_per_instance", {
    min: 1,
    default: 50_000,
    doc: "Tasks of one caller running at once.",
  }),
  runningSize: bytes("limits.running_size", {
    default: "1gb",
    doc: "Size of the journals of all running tasks, which stay in memory. Beyond it callers that run tasks are rejected with 503 when they start or continue one.",
  }),
  runningSizePerInstance: bytes("limits.running_size_per_instance", {
    default: "256mb",
    doc: "The same for the running tasks of one caller. The only running task of a caller is limited by `task_size` alone.",
  }),
  cachedTasks: integer("limits.cached_tasks", {
    min: 1,
    default: 256,
    renamedFrom: ["limits.resting_tasks"],
    doc: "Idle tasks kept in the in-memory cache.",
  }),
  mailbox: integer("limits.mailbox", {
    min: 1,
    default: 10_000,
    doc: "Messages waiting for one agent of a task.",
  }),
  resultLength: integer("limits.result_length", {
    min: 1,
    default: 1_000_000,
    doc: "Characters of an action's result that are stored.",
  }),
  taskBytes: bytes("limits.task_size", {
    default: "256mb",
    doc: "Size of a task's journal. A larger task fails.",
  }),
  errorsInARow: integer("limits.errors_in_a_row", {
    min: 1,
    default: 5,
    doc: "Consecutive system errors to one agent after which the task fails.",
  }),
  ownTurns: integer("limits.own_turns", {
    default: 100,
    doc: "Consecutive turns of an agent without mail from others before the task fails; 0 turns the guard off.",
  }),
  // Decision B12: a message that crashes the process must not do so forever.
  recoveries: integer("limits.recoveries", {
    min: 1,
    default: 3,
    doc: "Recoveries without progress after which a message is abandoned.",
  }),
  // Decision B11: only idempotent actions run again after a crash.
  actionAttempts: integer("limits.action_attempts", {
    min: 1,
    default: 3,
    doc: "Attempts to run an idempotent action.",
  }),
  waitingCommands: integer("limits.waiting_commands", {
    min: 1,
    default: 10_000,
    doc: "Commands waiting for one task while its state is being loaded.",
  }),
  undurable: integer("limits.undurable", {
    min: 1,
    default: 384,
    doc: "Decisions waiting for the disk before further turns wait.",
  }),
  undurablePerTask: integer("limits.undurable_per_task", {
    min: 1,
    default: 16,
    doc: "Decisions of one task waiting for the disk before its turns wait.",
  }),
  snapshotAfter: integer("limits.snapshot_after", {
    min: 1,
    default: 5_000,
    doc: "Entries after which a journal gets a snapshot, and again whenever it has doubled.",
  }),
  taskBudget: setting("budgets.task", budgetKind, {
    default: {},
    doc: "Limits on what the model calls of one task use, such as `{ max_cost = 0.5, max_calls = 50 }`. A swarm can set its own.",
  }),
  callerBudget: setting("budgets.caller", budgetKind, {
    default: {},
    doc: "The same for all tasks of one caller in one day (UTC).",
  }),
  callerTotalBudget: setting("budgets.caller_total", budgetKind, {
    default: {},
    doc: "The same for all tasks of one caller on all days together.",
  }),
  dayBudget: setting("budgets.day", budgetKind, {
    default: {},
    doc: "The same for all tasks of the server in one day (UTC).",
  }),
  followerBacklog: integer("limits.stream_backlog", {
    min: 1,
    default: 1_000,
    doc: "Events buffered for a slow reader before it reads from the store instead.",
  }),
});

/** Times are milliseconds; 0 means no limit where the setting says so. */
export type RuntimeLimits = SettingValues<typeof runtimeSettings>;

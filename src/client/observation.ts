/**
 * What a server tells about itself and its tasks while they run: journals, the feed, digests, statistics, the outbox.
 * The console is built on these shapes. Times named `*_at` and `at` are milliseconds since the epoch.
 */
import * as z from "zod/mini";
import type { Entry } from "../engine/index.js";
import { TaskStatus, TaskSummary, WaitingCall } from "./wire.js";

/** An entry of a journal and its number. A model's opaque memo is replaced by `true`. */
export type JournalEntry = Entry & { readonly n: number };

const Entries = z.array(z.custom<JournalEntry>((value) => typeof value === "object" && value !== null));

export const JournalPage = z.looseObject({
  task_id: z.string(),
  key: z.string(),
  task_owner: z.string(),
  status: TaskStatus,
  title: z.nullable(z.string()),
  /** The journal's last number. */
  number: z.number(),
  /** Pass it to the feed as `after`: the feed then has everything that this page does not have. */
  cursor: z.string(),
  /** In the order of the journal, also when the page was read backward. */
  entries: Entries,
  /** Whether there are more in the direction of reading. */
  more: z.boolean(),
});
/** Part of a task's journal. */
export type JournalPage = z.infer<typeof JournalPage>;

export const TaskCounts = z.looseObject({
  running: z.number(),
  paused: z.number(),
  completed: z.number(),
  failed: z.number(),
  cancelled: z.number(),
});
/** Number of tasks by status. */
export type TaskCounts = z.infer<typeof TaskCounts>;

export const TaskDigest = z.looseObject({
  task_id: z.string(),
  key: z.string(),
  /** The journal's last number that the digest includes. */
  number: z.number(),
  messages: z.number(),
  turns: z.number(),
  failed_turns: z.number(),
  actions: z.number(),
  failed_actions: z.number(),
  steps: z.number(),
  max_steps: z.nullable(z.number()),
  tokens: z.looseObject({ input: z.number(), output: z.number(), cached: z.number() }),
  /** US dollars; null where no model named a price. */
  cost: z.nullable(z.number()),
  /** Milliseconds during which the task waited for a person, until it last went on. */
  waited_ms: z.number(),
  /** Since when it waits for a person. */
  paused_at: z.nullable(z.number()),
  /** Names in order of appearance. */
  agents: z.array(z.string()),
  /** Agents of other swarms that sent or received mail: `name@swarm`. */
  others: z.optional(z.array(z.string())),
  /**
   * Blocks `[index in agents, from, to, flags]`, in milliseconds since the task was opened; at most 120. Flags: 1 failed,
   * 2 still open, 4 the task waits for a person since the end.
   */
  lanes: z.array(z.tuple([z.number(), z.number(), z.number(), z.number()])),
  /** Calls that wait for a person, with the agent that made them. */
  open: z.array(WaitingCall),
  /** What an agent needs before the task can continue, and its words. */
  held: z.nullable(
    z.looseObject({
      reason: z.string(),
      agent: z.string(),
      message: z.string(),
      /** With the reason `budget`: whose limit is reached, which one, and its value. */
      limit: z.exactOptional(
        z.looseObject({
          scope: z.enum(["owner", "task", "agent", "caller", "caller_total", "day"]),
          name: z.enum(["max_cost", "max_tokens", "max_calls"]),
          value: z.number(),
        }),
      ),
    }),
  ),
  /** Who may answer: `role:id`; the task's owner comes first. */
  answerers: z.array(z.string()),
  /** The journal is longer than what a digest reads; the sums cover its beginning only. */
  partial: z.optional(z.boolean()),
});
/** A task in figures. */
export type TaskDigest = z.infer<typeof TaskDigest>;

export const TaskDigests = z.looseObject({ digests: z.array(TaskDigest) });

export const FeedTask = z.looseObject({
  ...TaskSummary.shape,
  key: z.string(),
  /** The journal's last number. */
  number: z.number(),
  at: z.number(),
  /** Kinds of the entries since the last note of this task. */
  kinds: z.array(z.string()),
  /** Agents that work now. */
  doing: z.array(z.string()),
});
/** A task changed. Changes of one task within a quarter of a second are one event. */
export type FeedTask = z.infer<typeof FeedTask>;

const hello = z.looseObject({
  cursor: z.string(),
  version: z.string(),
  started_at: z.number(),
  swarm: z.string(),
  /** Hash of the definition in force. */
  definition: z.string(),
  caller: z.looseObject({ role: z.string(), id: z.string() }),
  dev: z.boolean(),
});
const entries = z.looseObject({ key: z.string(), first: z.number(), entries: Entries });
export const Token = z.looseObject({
  agent: z.string(),
  attempt: z.exactOptional(z.number()),
  tool: z.exactOptional(z.string()),
  call_id: z.exactOptional(z.string()),
  offset: z.exactOptional(z.number()),
  delta: z.string(),
  reset: z.exactOptional(z.boolean()),
});
const token = z.extend(Token, { key: z.string() });
const removed = z.looseObject({ key: z.string(), task_id: z.string() });
const swarm = z.looseObject({ name: z.string(), definition: z.string() });
const reset = z.looseObject({ cursor: z.string() });
const ping = z.looseObject({ at: z.number() });

export const StatsRow = z.array(z.nullable(z.number()));
/** The values of `columns` for one second or minute, in their order. Times are milliseconds; null was not measured. */
export type StatsRow = z.infer<typeof StatsRow>;

export const StatsPage = z.looseObject({
  step: z.enum(["1s", "1m"]),
  columns: z.array(z.string()),
  /** Oldest first. */
  rows: z.array(StatsRow),
  /** By column: the limit in force, for columns that have one. */
  limits: z.optional(z.record(z.string(), z.number())),
  /** How the server keeps data. */
  server: z.optional(
    z.looseObject({
      /** Tasks of the last process that this one continued. */
      recovered_tasks: z.number(),
      durability: z.optional(z.string()),
      /** How long, and how many, finished tasks and records are kept. 0: all of them. */
      retention: z.optional(
        z.looseObject({
          tasks_ms: z.number(),
          tasks: z.number(),
          audit_ms: z.number(),
          usage_ms: z.number(),
        }),
      ),
    }),
  ),
});
/** How the server did, over time. */
export type StatsPage = z.infer<typeof StatsPage>;

export const Traffic = z.looseObject({
  since: z.number(),
  until: z.number(),
  agents: z.array(
    z.looseObject({
      name: z.string(),
      turns: z.number(),
      failed: z.number(),
      p50: z.nullable(z.number()),
      p99: z.nullable(z.number()),
      /** Milliseconds spent in turns. */
      busy: z.number(),
      /** Messages in its mailboxes now, including those that it works on. */
      waiting: z.optional(z.number()),
      tokens: z.looseObject({ input: z.number(), output: z.number(), cached: z.number() }),
      cost: z.nullable(z.number()),
      /** Of the last turn that named one. */
      model: z.optional(z.nullable(z.string())),
    }),
  ),
  /** `from` and `to`: an agent, `agent@swarm`, `user` or `admin`. */
  edges: z.array(
    z.looseObject({
      from: z.string(),
      to: z.string(),
      type: z.string(),
      messages: z.number(),
      failed: z.number(),
    }),
  ),
  /** By agent (`@swarm`: a failed delivery; null: a task that failed by itself) and message, the most frequent first. */
  failures: z.optional(
    z.array(
      z.looseObject({
        agent: z.nullable(z.string()),
        message: z.string(),
        count: z.number(),
        last: z.number(),
        /** The task of the last one, and the entry's number. */
        key: z.string(),
        number: z.number(),
      }),
    ),
  ),
  /** There was more than is counted. */
  partial: z.boolean(),
});
/** Who wrote to whom, and how agents did. */
export type Traffic = z.infer<typeof Traffic>;

/** By name of the server-sent event. */
export const FEED_EVENTS = {
  hello,
  task: FeedTask,
  entries,
  token,
  counts: TaskCounts,
  stats: z.looseObject({ row: StatsRow }),
  swarm,
  removed,
  reset,
  ping,
} as const;

/** One event of the feed. A later feed continues after `id`; events without one are not repeated. */
export type FeedEvent = {
  [Name in keyof typeof FEED_EVENTS]: {
    readonly event: Name;
    readonly id?: string | undefined;
    readonly data: z.infer<(typeof FEED_EVENTS)[Name]>;
  };
}[keyof typeof FEED_EVENTS];

export const OutboxItem = z.looseObject({
  number: z.number(),
  id: z.string(),
  queue: z.string(),
  target: z.string(),
  status: z.enum(["waiting", "delivered", "refused", "expired"]),
  created_at: z.number(),
  due_at: z.number(),
  deadline_at: z.nullable(z.number()),
  attempts: z.number(),
  /** An attempt began whose result is not known. */
  interrupted: z.boolean(),
  /** Why the last attempt failed, or why no other follows. */
  reason: z.nullable(z.string()),
  finished_at: z.nullable(z.number()),
  task_key: z.nullable(z.string()),
  message_id: z.nullable(z.string()),
  to: z.nullable(z.string()),
  subject: z.nullable(z.string()),
});
/** Mail to another server. */
export type OutboxItem = z.infer<typeof OutboxItem>;

export const OutboxPage = z.looseObject({
  /** The queues that this server has. */
  queues: z.array(z.string()),
  queue: z.nullable(z.string()),
  counts: z.looseObject({
    waiting: z.number(),
    delivered: z.number(),
    refused: z.number(),
    expired: z.number(),
  }),
  /** Waiting items by target. */
  by_target: z.array(z.looseObject({ target: z.string(), waiting: z.number() })),
  /** Oldest first. */
  items: z.array(OutboxItem),
  next_after: z.nullable(z.number()),
});
/** Part of the outbox. */
export type OutboxPage = z.infer<typeof OutboxPage>;

export const SearchHit = z.looseObject({
  key: z.string(),
  task_id: z.string(),
  task_owner: z.string(),
  title: z.nullable(z.string()),
  /** Number of the entry. */
  n: z.number(),
  kind: z.string(),
  at: z.number(),
  from: z.nullable(z.string()),
  to: z.nullable(z.string()),
  /** Text around the words that were found, which stand between U+0001 and U+0002. */
  snippet: z.string(),
});
/** An entry in which the words were found. */
export type SearchHit = z.infer<typeof SearchHit>;

export const SearchPage = z.looseObject({
  /** Newest first. */
  hits: z.array(SearchHit),
  /** Whether everything that was committed has been searched; otherwise `progress` of it. */
  complete: z.boolean(),
  /** 0 to 1. */
  progress: z.number(),
});
/** Result of a search. */
export type SearchPage = z.infer<typeof SearchPage>;

export const TokenInfo = z.looseObject({
  token_id: z.string(),
  role: z.string(),
  id: z.string(),
  label: z.nullable(z.string()),
  created_at: z.number(),
  last_used_at: z.nullable(z.number()),
  revoked_at: z.nullable(z.number()),
  /** The token of this call. */
  current: z.boolean(),
});
/** A token without its secret. */
export type TokenInfo = z.infer<typeof TokenInfo>;

export const TokenList = z.looseObject({
  tokens: z.array(TokenInfo),
  next_cursor: z.nullable(z.number()),
});

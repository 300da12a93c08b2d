/**
 * Responses of servers. Strict out, tolerant in: unknown fields are kept, and fields that only newer or older servers
 * send are optional. A reference server sends no event ids and no task ids in its answers.
 */
import * as z from "zod/mini";

export const TaskStatus = z.enum(["running", "paused", "completed", "failed", "cancelled"]);
/** Status of a task. */
export type TaskStatus = z.infer<typeof TaskStatus>;

const MaybeText = z.optional(z.nullable(z.string()));

const SwarmFacts = z.looseObject({
  name: z.string(),
  version: MaybeText,
  description: MaybeText,
  entrypoint: MaybeText,
  keywords: z.optional(z.nullable(z.array(z.string()))),
  public: z.optional(z.nullable(z.boolean())),
});

/** Response of `GET /`. Before version 1.3, `swarm` is only the name. */
export const ServerInfo = z.looseObject({
  name: z.string(),
  version: MaybeText,
  protocol_version: MaybeText,
  swarm: z.optional(z.union([z.string(), SwarmFacts])),
  status: z.string(),
  uptime: z.optional(z.number()),
  capabilities: z.optional(z.array(z.string())),
  server: z.optional(z.looseObject({ name: z.string(), version: MaybeText })),
});
/** Response of `GET /`: the kind of server, its capabilities and its swarm. */
export type ServerInfo = z.infer<typeof ServerInfo>;

export const Health = z.looseObject({
  status: z.string(),
  swarm_name: MaybeText,
  timestamp: MaybeText,
  /** While a Mailroom server cannot write. */
  store: z.optional(
    z.looseObject({ waiting: z.number(), retries: z.number(), reason: MaybeText, since: MaybeText }),
  ),
  /** While a Mailroom server recovers tasks after its start. */
  taking_up: z.optional(z.looseObject({ done: z.number(), of: z.number() })),
});
/** Response of `GET /health`. */
export type Health = z.infer<typeof Health>;

export const Identity = z.looseObject({
  id: z.optional(z.string()),
  username: z.optional(z.string()),
  role: z.string(),
});

export const ServerStatus = z.looseObject({
  swarm: z.looseObject({ name: z.string(), status: z.string() }),
  active_users: z.number(),
  user_mail_ready: z.boolean(),
  user_task_running: z.boolean(),
});
/** State of the swarm and of the caller's tasks. */
export type ServerStatus = z.infer<typeof ServerStatus>;

/** An event in JSON. The reference sends `data` as text in some places. */
export const RawEvent = z.looseObject({
  id: z.optional(z.nullable(z.union([z.string(), z.number()]))),
  event: MaybeText,
  data: z.unknown(),
});
export type RawEvent = z.infer<typeof RawEvent>;

export const EventPage = z.looseObject({
  events: z.array(RawEvent),
  status: TaskStatus,
  more: z.boolean(),
});

const TaskFailure = z.looseObject({ code: z.string(), message: z.string() });

/** A tool call that waits for a user. */
export const BreakpointCall = z.looseObject({
  /** JSON text. */
  arguments: z.string(),
  call_id: z.string(),
  name: z.string(),
});
/** A tool call that waits for a user. */
export type BreakpointCall = z.infer<typeof BreakpointCall>;

export const WaitingCall = z.extend(BreakpointCall, {
  agent: z.string(),
  /** `breakpoint`: a person supplies the result. `approval`: a person decides whether the call runs. */
  kind: z.optional(z.string()),
  /** When it can no longer be approved. */
  expires: z.optional(z.string()),
});
/** A call that waits for a person. */
export type WaitingCall = z.infer<typeof WaitingCall>;

export const RawMessageAnswer = z.looseObject({
  response: z.optional(z.nullable(z.string())),
  events: z.optional(z.nullable(z.array(RawEvent))),
  task_id: z.optional(z.string()),
  status: z.optional(TaskStatus),
  error: z.optional(z.nullable(TaskFailure)),
  breakpoint: z.optional(z.nullable(z.array(BreakpointCall))),
  approvals: z.optional(z.nullable(z.array(BreakpointCall))),
  reason: z.optional(z.string()),
});

const AwaitedReply = z.looseObject({
  from: z.string(),
  to: z.string(),
  since: z.nullable(z.string()),
  until: z.nullable(z.string()),
});
/** An answer of another swarm that a task waits for, since when and until when. */
export type AwaitedReply = z.infer<typeof AwaitedReply>;

export const Usage = z.looseObject({
  /** Model calls, including failed ones. */
  calls: z.number(),
  failed_calls: z.number(),
  /** `cached` is part of `input`. */
  tokens: z.looseObject({ input: z.number(), output: z.number(), cached: z.number() }),
  /** Null if no model had a price. */
  cost: z.nullable(z.number()),
});
/** What model calls used. */
export type Usage = z.infer<typeof Usage>;

export const Budget = z.looseObject({
  max_cost: z.optional(z.number()),
  max_tokens: z.optional(z.number()),
  max_calls: z.optional(z.number()),
});
/** Limits on what model calls use. Absent: no limit. */
export type Budget = z.infer<typeof Budget>;

const TaskUsage = z.looseObject({ ...Usage.shape, agents: z.record(z.string(), Usage) });
/** What the model calls of a task used, in all and by agent. */
export type TaskUsage = z.infer<typeof TaskUsage>;

const TaskBudget = z.looseObject({ owner: Budget, configured: Budget });
/** Limits of a task: those that its owner set, and those of the operator. */
export type TaskBudget = z.infer<typeof TaskBudget>;

export const TaskBudgetAnswer = z.looseObject({
  key: z.string(),
  task_id: z.string(),
  status: TaskStatus,
  budget: z.optional(TaskBudget),
  usage: z.optional(TaskUsage),
});
/** A task after its limits were changed. */
export type TaskBudgetAnswer = z.infer<typeof TaskBudgetAnswer>;

export const RawTask = z.looseObject({
  task_id: z.string(),
  task_owner: z.string(),
  task_contributors: z.optional(z.array(z.string())),
  start_time: MaybeText,
  events: z.optional(z.array(RawEvent)),
  is_running: z.boolean(),
  completed: z.boolean(),
  title: MaybeText,
  status: z.optional(TaskStatus),
  error: z.optional(z.nullable(TaskFailure)),
  key: z.optional(z.string()),
  approvers: z.optional(z.array(z.string())),
  waiting_for: z.optional(z.array(AwaitedReply)),
  reason: z.optional(z.string()),
  usage: z.optional(TaskUsage),
  budget: z.optional(TaskBudget),
});
export type RawTask = z.infer<typeof RawTask>;
export const RawTasks = z.record(z.string(), RawTask);

export const TaskSummary = z.looseObject({
  task_id: z.string(),
  key: z.optional(z.string()),
  task_owner: z.string(),
  status: TaskStatus,
  title: MaybeText,
  start_time: z.string(),
  updated_time: z.optional(z.string()),
  usage: z.optional(Usage),
});
/** A task in a list. */
export type TaskSummary = z.infer<typeof TaskSummary>;

export const TaskPage = z.looseObject({ tasks: z.array(TaskSummary), next_cursor: MaybeText });

export const RemoteSwarm = z.looseObject({
  swarm_name: z.string(),
  base_url: MaybeText,
  version: MaybeText,
  last_seen: MaybeText,
  is_active: z.optional(z.boolean()),
  latency: z.optional(z.nullable(z.number())),
  swarm_description: MaybeText,
  keywords: z.optional(z.nullable(z.array(z.string()))),
  /** The following fields are for admins. */
  volatile: z.optional(z.boolean()),
  auth_ref: MaybeText,
  auth_state: z.optional(z.string()),
  /** Failed health checks in a row. */
  failures: z.optional(z.number()),
  /** Why the last health check failed. */
  last_error: MaybeText,
  checked_at: MaybeText,
  /** The last health checks, oldest first: milliseconds since the epoch, latency in seconds (null: it failed). */
  checks: z.optional(z.array(z.tuple([z.number(), z.nullable(z.number())]))),
  /** Messages for it that are not delivered. */
  waiting: z.optional(z.number()),
  /** Fingerprint of the key that was seen at registration. */
  public_key: MaybeText,
});
/** A swarm in the server's registry. */
export type RemoteSwarm = z.infer<typeof RemoteSwarm>;

export const RemoteSwarms = z.looseObject({ swarms: z.array(RemoteSwarm) });

export const SwarmReceipt = z.looseObject({ status: z.string(), swarm_name: z.string() });
/** Confirms a change of a swarm. */
export type SwarmReceipt = z.infer<typeof SwarmReceipt>;

export const SwarmPing = z.looseObject({
  swarm_name: z.string(),
  ok: z.boolean(),
  /** Seconds. */
  latency: z.nullable(z.number()),
  status: MaybeText,
  reason: MaybeText,
});
/** Result of a health check of another swarm. */
export type SwarmPing = z.infer<typeof SwarmPing>;

export const SwarmProposal = z.looseObject({
  swarm_name: z.string(),
  base_url: z.string(),
  source: z.string(),
  proposed_at: z.string(),
});
/** A swarm that discovery found and that awaits an admin's decision. */
export type SwarmProposal = z.infer<typeof SwarmProposal>;

export const SwarmProposals = z.looseObject({ proposals: z.array(SwarmProposal) });

export const InterswarmReceipt = z.looseObject({
  swarm: z.optional(z.string()),
  task_id: z.string(),
  status: z.string(),
  local_runner: MaybeText,
});
export type InterswarmReceipt = z.infer<typeof InterswarmReceipt>;

export const AnyObject = z.looseObject({});

export const Anything = z.unknown();

export const ErrorBody = z.looseObject({
  detail: z.optional(z.unknown()),
  code: z.optional(z.unknown()),
  error: z.optional(z.unknown()),
  message: z.optional(z.unknown()),
});

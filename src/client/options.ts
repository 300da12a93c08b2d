/** Options of calls, and how they are sent. */
import type { StateListener } from "./connection-state.js";
import type { CallOptions, WriteOptions } from "./transport.js";
import type { TaskStatus } from "./wire.js";

/** Options of streams. */
export interface StreamOptions extends WriteOptions {
  /**
   * Whether to yield heartbeats.
   * @defaultValue false
   */
  readonly pings?: boolean;
  /**
   * Called with every new state of the stream's connection.
   * @defaultValue none
   */
  readonly onState?: StateListener;
}

/** Options of a message to the swarm. */
export interface MessageOptions extends WriteOptions {
  /** @defaultValue `"New Message"` */
  readonly subject?: string;
  /** @defaultValue `"request"` */
  readonly msgType?: "request" | "broadcast" | "interrupt";
  /**
   * The task to continue, or the id of a new one.
   * @defaultValue a new task with an id of the server's choice
   */
  readonly taskId?: string;
  /**
   * The agent that receives the message.
   * @defaultValue the swarm's entrypoint
   */
  readonly entrypoint?: string;
  /**
   * Whether the answer includes the events of the task.
   * @defaultValue false
   */
  readonly showEvents?: boolean;
  /** How the message resumes a paused task, in the reference's form. */
  readonly resumeFrom?: "user_response" | "breakpoint_tool_call";
  /** `max_steps`, `budget` (limits on what model calls use), `timeout` (seconds that the server waits), `breakpoint_tool_call_result`, … */
  readonly kwargs?: Readonly<Record<string, unknown>>;
  /**
   * `false`: return as soon as the message is durable, with the status `running`.
   * @defaultValue true
   */
  readonly wait?: boolean;
}

export interface MessageStreamOptions
  extends Omit<MessageOptions, "showEvents" | "wait">,
    Pick<StreamOptions, "pings" | "onState"> {}

/** Options of task lists. */
export interface TaskListOptions extends CallOptions {
  /**
   * Only tasks with this status.
   * @defaultValue all
   */
  readonly status?: TaskStatus;
  /** Only tasks created at this time or later (ISO 8601). */
  readonly since?: string;
  /** Only tasks created before this time (ISO 8601). */
  readonly until?: string;
  /** Only tasks whose title or id contains this text. */
  readonly q?: string;
  /** Only tasks in which this agent took part: `name`, `name@swarm`, or `@swarm` for any agent of another swarm. */
  readonly agent?: string;
  /** Only tasks of this caller: `role:id`. For admins. */
  readonly owner?: string;
  /**
   * Number of tasks per page.
   * @defaultValue 50
   */
  readonly limit?: number;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
}

/** Options of `taskEvents`. */
export interface TaskEventsOptions extends CallOptions {
  /**
   * Id of the last event already seen.
   * @defaultValue none: from the task's beginning
   */
  readonly after?: string;
  /**
   * `false`: only past events. `"round"`: until the task is idle. `true`: without end, through all later rounds.
   * @defaultValue `"round"`
   */
  readonly live?: boolean | "round";
  /**
   * Whether to yield heartbeats.
   * @defaultValue false
   */
  readonly pings?: boolean;
  /**
   * Called with every new state of the stream's connection.
   * @defaultValue none
   */
  readonly onState?: StateListener;
}

/** One text for the only waiting call, or a result for each of several. */
export type BreakpointAnswer = string | readonly { readonly call_id: string; readonly content: string }[];

/** Options of `registerSwarm`. */
export interface RegisterSwarmOptions extends WriteOptions {
  readonly name: string;
  readonly baseUrl: string;
  /** Token for calls to the swarm. */
  readonly authToken?: string;
  /**
   * Whether the registration ends with the server's process.
   * @defaultValue true
   */
  readonly volatile?: boolean;
  /** Stored with the swarm and listed with it. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Options of `acceptSwarmProposal`. */
export interface AcceptProposalOptions extends WriteOptions, Pick<RegisterSwarmOptions, "authToken"> {
  /**
   * Whether the registration ends with the server's process.
   * @defaultValue false
   */
  readonly volatile?: boolean;
}

/** Options of `sendInterswarmMessage`. */
export interface InterswarmMessageOptions extends WriteOptions {
  readonly body: string;
  /** `agent@swarm`; one for a request, any number for a broadcast. */
  readonly targets: readonly string[];
  /** Token of the user in whose name the message is sent. */
  readonly userToken: string;
  /** @defaultValue chosen by the server */
  readonly subject?: string;
  /** @defaultValue `"request"` */
  readonly msgType?: "request" | "broadcast";
  /** The task to continue. Without it a task is opened. */
  readonly taskId?: string;
  /** Passed to the other swarms unchanged. */
  readonly routingInfo?: Readonly<Record<string, unknown>>;
  /** Whether the response is a stream of events. @defaultValue false */
  readonly stream?: boolean;
  /** Whether the stream leaves out heartbeats. @defaultValue false */
  readonly ignoreStreamPings?: boolean;
}

/** Omits unset fields, because the published schemas do not allow null. */
export function messageBody(body: string, options: MessageOptions): Record<string, unknown> {
  return defined({
    body,
    subject: options.subject,
    msg_type: options.msgType,
    task_id: options.taskId,
    entrypoint: options.entrypoint,
    show_events: options.showEvents,
    resume_from: options.resumeFrom,
    kwargs: options.kwargs,
    wait: options.wait,
  });
}

export function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export function callOptions(options: WriteOptions): WriteOptions {
  const { signal, timeout, idempotencyKey } = options;
  return {
    ...(signal && { signal }),
    ...(timeout !== undefined && { timeout }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

/** What callers hand in, and how it goes on the wire. */
import type { CallOptions, WriteOptions } from "./transport.js";
import type { TaskStatus } from "./wire.js";

export interface StreamOptions extends WriteOptions {
  /** Hand out heartbeats too. Default: no. */
  readonly pings?: boolean;
}

export interface MessageOptions extends WriteOptions {
  /** Default `New Message`. */
  readonly subject?: string;
  /** Default `request`. */
  readonly msgType?: "request" | "broadcast" | "interrupt";
  /** A task to go on with, or the id that a new one shall have. */
  readonly taskId?: string;
  readonly entrypoint?: string;
  /** Answer with the events of the task. */
  readonly showEvents?: boolean;
  readonly resumeFrom?: "user_response" | "breakpoint_tool_call";
  /** `max_steps`, `timeout` (seconds that the server waits), `breakpoint_tool_call_result`, … */
  readonly kwargs?: Readonly<Record<string, unknown>>;
  /** `false`: answer as soon as the message is durable, with the status `running`. */
  readonly wait?: boolean;
}

export interface MessageStreamOptions
  extends Omit<MessageOptions, "showEvents" | "wait">,
    Pick<StreamOptions, "pings"> {}

export interface TaskListOptions extends CallOptions {
  readonly status?: TaskStatus;
  /** How many tasks a page has. */
  readonly limit?: number;
  readonly cursor?: string;
}

export interface TaskEventsOptions extends CallOptions {
  /** Id of the last event already seen. Default: from the task's beginning. */
  readonly after?: string;
  /**
   * `false`: only what has happened so far. `round` (default): go on until the task stands still.
   * `true`: go on for ever, through all rounds to come.
   */
  readonly live?: boolean | "round";
  readonly pings?: boolean;
}

/** One text for the only call that waits, or a result for each of several. */
export type BreakpointAnswer = string | readonly { readonly call_id: string; readonly content: string }[];

export interface RegisterSwarmOptions extends WriteOptions {
  readonly name: string;
  readonly baseUrl: string;
  readonly authToken?: string;
  /** Default on the server: true, gone with the process. */
  readonly volatile?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface AcceptProposalOptions extends WriteOptions, Pick<RegisterSwarmOptions, "authToken"> {
  /** Default on the server: false, kept. */
  readonly volatile?: boolean;
}

export interface InterswarmMessageOptions extends WriteOptions {
  readonly body: string;
  /** `agent@swarm`; one for a request, any number for a broadcast. */
  readonly targets: readonly string[];
  readonly userToken: string;
  readonly subject?: string;
  readonly msgType?: "request" | "broadcast";
  readonly taskId?: string;
  readonly routingInfo?: Readonly<Record<string, unknown>>;
  readonly stream?: boolean;
  readonly ignoreStreamPings?: boolean;
}

/** Unset fields are left out: the published schemas know no null. */
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

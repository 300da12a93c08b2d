/** Events as the client yields them: one form for all servers. */
import { isRecord, type TokenData } from "../base/index.js";
import { Token } from "./observation.js";
import { type RawEvent, TaskStatus } from "./wire.js";

export interface TaskEventData {
  /** ISO 8601. */
  readonly timestamp?: string;
  readonly description?: string;
  readonly task_id?: string;
  /** Depends on the event, for example the message of `new_message`. */
  readonly extra_data: Readonly<Record<string, unknown>>;
  /** On events that end a round: the answer, the reason of a failure, or the waiting calls as JSON. */
  readonly response?: string;
  /** The task's status, on events that change it. Absent on servers of the reference. */
  readonly status?: TaskStatus;
}

/** An event of a task, in the same form for all servers. */
export interface TaskEvent {
  /** Opaque. Absent on pings, on unfinished text, and on servers that cannot resume a stream. */
  readonly id?: string;
  /** `new_message`, `action_call`, `task_complete`, … */
  readonly event: string;
  readonly data: TaskEventData;
}

export function toTaskEvent(raw: RawEvent): TaskEvent {
  return {
    ...(raw.id !== null && raw.id !== undefined && raw.id !== "" && { id: String(raw.id) }),
    event: raw.event ?? "message",
    data: toTaskEventData(raw.data),
  };
}

/** Parses the data of an event, which arrives as text over SSE. */
function toTaskEventData(data: unknown): TaskEventData {
  const parsed = typeof data === "string" ? parseData(data) : data;
  if (!isRecord(parsed)) return { description: toText(parsed), extra_data: {} };
  const { timestamp, description, task_id, extra_data, response, status } = parsed;
  const known = TaskStatus.safeParse(status);
  return {
    ...parsed,
    ...(typeof timestamp === "string" && { timestamp }),
    ...(typeof description === "string" && { description }),
    ...(typeof task_id === "string" && { task_id }),
    extra_data: isRecord(extra_data) ? extra_data : {},
    ...(typeof response === "string" && { response }),
    ...(known.success && { status: known.data }),
  };
}

/**
 * Whether a round of the task ends with this event. A pause also ends a round: its `task_complete` has the status
 * `paused`, and its response lists the waiting calls.
 * @example
 * ```ts
 * for await (const event of client.taskEvents(taskId, { live: true })) if (endsRound(event)) break;
 * ```
 */
export function endsRound(event: TaskEvent): boolean {
  if (event.event !== "task_complete" && event.event !== "task_error") return false;
  return event.data.status !== undefined
    ? event.data.status !== "running"
    : event.data.response !== undefined;
}

/**
 * The text that an agent writes, of a `token` event. Pass it to {@link WrittenTexts}, which joins the pieces. Token events
 * have no id and are not repeated; the event that ends the round has the finished answer.
 * @returns undefined for other events
 * @example
 * ```ts
 * const texts = new WrittenTexts();
 * for await (const event of client.postMessageStream("What is on my desk?")) {
 *   const token = tokenOf(event);
 *   if (token !== undefined) console.log(texts.add(token)?.text);
 * }
 * ```
 */
export function tokenOf({ event, data }: TaskEvent): TokenData | undefined {
  return event === "token" ? Token.safeParse(data).data : undefined;
}

function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Events as the client hands them out: one form, whatever the server wrote. */
import { type RawEvent, TaskStatus } from "./wire.js";

export interface MailEventData {
  readonly timestamp?: string;
  readonly description?: string;
  readonly task_id?: string;
  readonly extra_data: Readonly<Record<string, unknown>>;
  /** On events that end a round: the answer, the reason of a failure, or the waiting calls as JSON. */
  readonly response?: string;
  /** On events that change it. Absent on servers of the reference. */
  readonly status?: TaskStatus;
}

export interface MailEvent {
  /** Opaque. Absent on pings, on unfinished text, and on servers that cannot resume a stream. */
  readonly id?: string;
  readonly event: string;
  readonly data: MailEventData;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function eventOf(raw: RawEvent): MailEvent {
  return {
    ...(raw.id !== null && raw.id !== undefined && raw.id !== "" && { id: String(raw.id) }),
    event: raw.event ?? "message",
    data: dataOf(raw.data),
  };
}

/** The data of an event that came as text, as it does over SSE. */
export function dataOf(data: unknown): MailEventData {
  const parsed = typeof data === "string" ? parseData(data) : data;
  if (!isObject(parsed)) return { description: textOf(parsed), extra_data: {} };
  const { timestamp, description, task_id, extra_data, response, status } = parsed;
  const known = TaskStatus.safeParse(status);
  return {
    ...parsed,
    ...(typeof timestamp === "string" && { timestamp }),
    ...(typeof description === "string" && { description }),
    ...(typeof task_id === "string" && { task_id }),
    extra_data: isObject(extra_data) ? extra_data : {},
    ...(typeof response === "string" && { response }),
    ...(known.success && { status: known.data }),
  };
}

/**
 * Whether a round of the task ends with this event. A round of a paused task ends too: its `task_complete` has the
 * status `paused`, and its response is the list of calls that wait for an answer.
 */
export function endsRound(event: MailEvent): boolean {
  if (event.event !== "task_complete" && event.event !== "task_error") return false;
  return event.data.status !== undefined
    ? event.data.status !== "running"
    : event.data.response !== undefined;
}

function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

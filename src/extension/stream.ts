/** Server-sent events of a route. */
import type { TokenData } from "../base/index.js";
import type { DeltaNotification } from "../engine/index.js";

/**
 * Waits until a turn of the event loop in which no other long work of the caller begins. Long work is done in pieces of a
 * few milliseconds with this between them: a new connection of anybody waits for as many turns as there are before it.
 */
export type NextTurn = () => Promise<void>;

export interface StreamEvent {
  /** Absent on events that cannot be replayed: heartbeats and partial text. */
  readonly id?: string | undefined;
  readonly event: string;
  readonly data: unknown;
}

/** Lines end with CRLF, as in the reference (REF-8). JSON text has no raw line breaks, so it fits one data line. */
export function formatEvent({ id, event, data }: StreamEvent): string {
  return eventText(event, JSON.stringify(data), id);
}

/** The same for data that is JSON text already. */
export function eventText(event: string, json: string, id?: string): string {
  const idLine = id === undefined ? "" : `id: ${id}\r\n`;
  return `event: ${event}\r\n${idLine}data: ${json}\r\n\r\n`;
}

/** The data of a `token` event. */
export function tokenData({ agent, attempt, call, offset, delta, reset }: DeltaNotification): TokenData {
  return {
    agent,
    attempt,
    ...(call !== undefined && { tool: call.name, call_id: call.id }),
    offset,
    delta,
    ...(reset === true && { reset }),
  };
}

/** A stream whose head has been sent. */
export interface EventStream {
  /** Aborts when the stream has ended: the client left, its token was revoked, or the server closes. */
  readonly signal: AbortSignal;
  /** Writes the text of events and waits while the client's buffer is full. */
  write(text: string | Uint8Array): Promise<void>;
  /** Waits for a place to hold a page of stored data. Call the result when the page is written. */
  place(): Promise<() => void>;
  /** Waits for the next turn of the caller. */
  readonly turn: NextTurn;
}

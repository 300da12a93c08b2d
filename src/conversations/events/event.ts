/** An event of a journal or of the server itself. */
import type { FilteredEvent } from "../rules/filter.js";
import type { Actor } from "../rules/types.js";

export interface MapEvent extends FilteredEvent {
  /** Unique. Sorts as text in event order. */
  readonly id: string;
  readonly timestamp: number;
  readonly causedBy?: readonly string[] | undefined;
  /** Whether the actor may receive it when it happens. */
  visibleLive(actor: Actor): boolean;
  /** Whether the actor may see it in a replay. */
  visibleInReplay(actor: Actor): boolean;
  /** The part of `data` that this actor may see. Default: all of it. */
  dataFor?(actor: Actor): Readonly<Record<string, unknown>>;
}

/**
 * Event ids. The id of a journal event contains the position of its row in the global commit order, so that
 * it can be found after a restart. The id of a core event contains the position before it, a counter, and the
 * process, because core events end with their process.
 */
export function journalEventId(position: number, index: number): string {
  return `evt-${padded(position, 11)}-${padded(index, 4)}`;
}

export function coreEventId(position: number, counter: number, epoch: string): string {
  return `evt-${padded(position, 11)}-c${padded(counter, 8)}-${epoch}`;
}

/** Sorts before the core event with this counter, and after everything before it. */
export function eventMark(position: number, counter: number): string {
  return `evt-${padded(position, 11)}-c${padded(counter, 8)}`;
}

/** The position in an event id or a mark. */
export function positionIn(id: string): number {
  return parsed(/^evt-([0-9a-z]{11})-/.exec(id)?.[1]);
}

export type ParsedEventId =
  | { readonly kind: "journal"; readonly position: number; readonly index: number }
  | { readonly kind: "core"; readonly position: number }
  | { readonly kind: "mark"; readonly position: number };

export function parseEventId(id: string): ParsedEventId | undefined {
  const journal = /^evt-([0-9a-z]{11})-([0-9a-z]{4})$/.exec(id);
  if (journal !== null) {
    return { kind: "journal", position: parsed(journal[1]), index: parsed(journal[2]) };
  }
  const core = /^evt-([0-9a-z]{11})-c[0-9a-z]{8}-[0-9a-z]+$/.exec(id);
  if (core !== null) return { kind: "core", position: parsed(core[1]) };
  const mark = /^evt-([0-9a-z]{11})-c[0-9a-z]{8}$/.exec(id);
  return mark === null ? undefined : { kind: "mark", position: parsed(mark[1]) };
}

function padded(value: number, width: number): string {
  return value.toString(36).padStart(width, "0");
}

function parsed(text = "0"): number {
  return Number.parseInt(text, 36);
}

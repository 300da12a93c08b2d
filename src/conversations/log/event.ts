/** Events as they are told, whatever they come from. */
import type { FilteredEvent } from "../domain/filter.js";
import type { Caller } from "../domain/types.js";

export interface MapEvent extends FilteredEvent {
  /** Sorts as text in the order in which things happened; unique for ever. */
  readonly id: string;
  readonly timestamp: number;
  readonly causedBy?: readonly string[] | undefined;
  /** Whether the caller may be told of it, now that it happens. */
  toldLive(caller: Caller): boolean;
  /** Whether the caller may be told of it when it asks afterwards. */
  toldAgain(caller: Caller): boolean;
  /** For events that not everybody may see the whole of. Default: `data`. */
  dataFor?(caller: Caller): Readonly<Record<string, unknown>>;
}

/**
 * Ids of events. Events of journals are named by the place of their entry in the one global commit order, so that they
 * can be found again after any restart; core events by the place they came after, a counter, and the process that
 * made them, because they end with it.
 */
export function journalEventId(position: number, index: number): string {
  return `evt-${padded(position, 11)}-${padded(index, 4)}`;
}

export function coreEventId(position: number, counter: number, epoch: string): string {
  return `evt-${padded(position, 11)}-c${padded(counter, 8)}-${epoch}`;
}

export type ParsedEventId =
  | { readonly kind: "journal"; readonly position: number; readonly index: number }
  | { readonly kind: "core"; readonly position: number };

export function parseEventId(id: string): ParsedEventId | undefined {
  const journal = /^evt-([0-9a-z]{11})-([0-9a-z]{4})$/.exec(id);
  if (journal !== null) {
    return { kind: "journal", position: parsed(journal[1]), index: parsed(journal[2]) };
  }
  const core = /^evt-([0-9a-z]{11})-c[0-9a-z]{8}-[0-9a-z]+$/.exec(id);
  return core === null ? undefined : { kind: "core", position: parsed(core[1]) };
}

function padded(value: number, width: number): string {
  return value.toString(36).padStart(width, "0");
}

function parsed(text = ""): number {
  return Number.parseInt(text, 36);
}

/** `event` and the fields around it, as text: the same for every subscription, so it is made once. */
const texts = new WeakMap<MapEvent, string>();

export function eventText(event: MapEvent, caller: Caller): string {
  if (event.dataFor !== undefined) return serialise(event, event.dataFor(caller));
  const known = texts.get(event);
  if (known !== undefined) return known;
  const text = serialise(event, event.data);
  texts.set(event, text);
  return text;
}

function serialise(event: MapEvent, data: Readonly<Record<string, unknown>>): string {
  const { id, type, timestamp, source, causedBy } = event;
  const cause = causedBy === undefined ? "" : `"causedBy":${JSON.stringify(causedBy)},`;
  return `"eventId":"${id}","timestamp":${timestamp},${cause}"event":${JSON.stringify({ id, type, timestamp, source, data })}`;
}

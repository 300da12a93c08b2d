import { encodeJson } from "../../base/index.js";
import type { Actor, MapEvent } from "../../conversations/index.js";

/** The serialized event by its data, which is the same for many subscriptions. */
const texts = new WeakMap<object, string>();

export function eventText(event: MapEvent, actor: Actor): string {
  const data = event.dataFor?.(actor) ?? event.data;
  const known = texts.get(data);
  if (known !== undefined) return known;
  const text = serialise(event, data);
  texts.set(data, text);
  return text;
}

function serialise(event: MapEvent, data: Readonly<Record<string, unknown>>): string {
  const { id, type, timestamp, source, causedBy } = event;
  const cause = causedBy === undefined ? "" : `"causedBy":${JSON.stringify(causedBy)},`;
  return `"eventId":"${id}","timestamp":${timestamp},${cause}"event":${encodeJson({ id, type, timestamp, source, data })}`;
}

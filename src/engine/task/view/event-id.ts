/** Parses an event id into number and index. Undefined if it is invalid. */
export function parseEventId(id: string): { number: number; index: number } | undefined {
  const match = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(id);
  if (match === null) return undefined;
  // An id without an index belongs to the entry's only event.
  return {
    number: Number(match[1]),
    index: match[2] === undefined ? Number.POSITIVE_INFINITY : Number(match[2]),
  };
}

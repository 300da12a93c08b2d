/** The number and place of an event id, or nothing if it is not one of ours. */
export function parseEventId(id: string): { number: number; index: number } | undefined {
  const match = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(id);
  if (match === null) return undefined;
  // An id without a place is that of the entry's only event.
  return {
    number: Number(match[1]),
    index: match[2] === undefined ? Number.POSITIVE_INFINITY : Number(match[2]),
  };
}

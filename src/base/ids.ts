const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Where new ids come from; a simulation passes a seeded one. */
export interface Ids {
  /** A random UUID, for everything that is sent. */
  uuid(): string;
  /** A time-ordered UUID, for keys that are indexed. */
  ordered(): string;
}

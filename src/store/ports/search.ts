/** A derived index of what was said in tasks. It is filled on demand, may be deleted, and is built again. */
import type { InstanceId } from "../../engine/index.js";
import type { JournalKey } from "../../journal/index.js";

export interface SearchableEntry {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  readonly number: number;
  readonly kind: string;
  readonly at: number;
  /** The agent that it concerns, if one does. */
  readonly agent?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly text: string;
}

export interface FoundEntry {
  readonly key: JournalKey;
  readonly number: number;
  readonly kind: string;
  readonly at: number;
  readonly from: string | null;
  readonly to: string | null;
  /** Text around the words, which stand between U+0001 and U+0002. */
  readonly snippet: string;
}

export interface SearchQuery {
  /** Words that must all be there; the last one may be the beginning of a word. */
  readonly words: readonly string[];
  /** Only what belongs to this instance. */
  readonly instance?: InstanceId;
  readonly kind?: string;
  readonly agent?: string;
  /** Milliseconds since the epoch. */
  readonly since?: number;
  readonly limit: number;
}

export interface SearchIndex {
  /** Everything committed up to this position is in the index. */
  readonly position: number;
  /** Adds entries; everything up to `position` is in the index then. */
  add(entries: readonly SearchableEntry[], position: number): void;
  /** Newest first, one part of the index at a time: each part takes a few milliseconds, so that other work can run between. */
  find(query: SearchQuery): Iterable<FoundEntry[]>;
  remove(key: JournalKey): void;
}

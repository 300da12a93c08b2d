/** The contract of a journaled aggregate: the pure rules of one kind of journal. */
import type { SnapshotPart } from "./ports.js";

/** What a decision gets from outside: the time and new ids. */
export interface DecisionContext {
  readonly at: number;
  /** `at` as RFC 3339 text. */
  readonly timestamp: string;
  id(): string;
}

/** The types that belong to one kind of aggregate. */
export interface Types {
  readonly state: object;
  readonly entry: object;
  readonly command: object;
  readonly refusal: unknown;
  /** Small and immutable: the facts that are available without reading the state. */
  readonly summary: object;
  /** A complete instruction for one effect, as of the entry that orders it. */
  readonly order: unknown;
  /** What the kernel's owner attaches to a state in memory. */
  readonly work: object;
}

export type Decision<T extends Types> =
  /** The state has evolved by exactly these entries. Empty if nothing was to be done. */
  | { readonly ok: true; readonly state: T["state"]; readonly entries: readonly T["entry"][] }
  /** The state is unchanged. */
  | { readonly ok: false; readonly refusal: T["refusal"] };

export interface Aggregate<T extends Types> {
  /** For messages: "task", "conversation". */
  readonly kind: string;
  /** The state after the journal's first entry. */
  begin(first: T["entry"]): T["state"];
  /** In place. Throws on an unknown entry. */
  evolve(state: T["state"], entry: T["entry"]): void;
  number(state: T["state"]): number;
  /**
   * Gets the newest state, durable or not, and the context; never the clock, the store or the durable number. Without a
   * state it begins a journal.
   */
  decide(state: T["state"] | undefined, command: T["command"], moment: DecisionContext): Decision<T>;
  summary(state: T["state"]): T["summary"];
  /** In parts of about 1 MB at most, named in a stable order. */
  freeze?(state: T["state"]): Iterable<SnapshotPart>;
  /** `undefined` for a snapshot of another version: the journal is then read from its beginning. */
  thaw?(parts: readonly SnapshotPart[]): T["state"] | undefined;
}

/** The contract of a journaled aggregate: the pure rules of one kind of journal. */
import type { SnapshotPart } from "./ports.js";

/** Everything a decision needs from the world: the time, and as many new ids as it asks for. */
export interface Moment {
  readonly at: number;
  /** `at` in the form of RFC 3339. */
  readonly timestamp: string;
  id(): string;
}

/** The types that belong to one kind of aggregate. */
export interface Types {
  readonly state: object;
  readonly entry: object;
  readonly command: object;
  readonly refusal: unknown;
  /** Small and immutable: what can be told of an aggregate without reading its state. */
  readonly summary: object;
  /** A complete instruction for one effect, as of the entry that orders it. */
  readonly order: unknown;
  /** What the owner of the kernel keeps beside a state in memory. */
  readonly work: object;
}

export type Decision<T extends Types> =
  /** The state has evolved by exactly these entries. No entries: there was nothing to do. */
  | { readonly ok: true; readonly state: T["state"]; readonly entries: readonly T["entry"][] }
  /** The state is as it was. */
  | { readonly ok: false; readonly refusal: T["refusal"] };

export interface Aggregate<T extends Types> {
  /** For messages: "task", "conversation". */
  readonly kind: string;
  /** The state after the journal's first entry. */
  begin(first: T["entry"]): T["state"];
  /** In place. Throws on an entry that it does not know. */
  evolve(state: T["state"], entry: T["entry"]): void;
  number(state: T["state"]): number;
  /**
   * Sees the newest state, durable or not, and the moment; never the clock, the store or what is durable. With no state
   * it begins a journal.
   */
  decide(state: T["state"] | undefined, command: T["command"], moment: Moment): Decision<T>;
  summary(state: T["state"]): T["summary"];
  /** In parts of about 1 MB at most, named in a stable order. */
  freeze?(state: T["state"]): Iterable<SnapshotPart>;
  /** `undefined` for what another version wrote: the journal is then read from its beginning. */
  thaw?(parts: readonly SnapshotPart[]): T["state"] | undefined;
}

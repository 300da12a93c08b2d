/** One rule of a protocol, as data. Tests cite the id in their title: `it("[MAIL-TASK-01] …")`. */
export interface Requirement {
  /** Never reused, never renamed: tests and notes refer to it. */
  readonly id: string;
  /** Where the rule stands: document and chapter. */
  readonly source: string;
  readonly level: "MUST" | "SHOULD" | "ours";
  /** The rule in our own words. */
  readonly rule: string;
  /** The part of Mailroom that answers for it. */
  readonly part: Part;
}

export const PARTS = ["engine", "server", "federation", "conversations", "mesh", "agents"] as const;
export type Part = (typeof PARTS)[number];

/** Parts that claim to be complete: every rule of theirs must be cited by a test. */
export const FINISHED: readonly Part[] = [
  "engine",
  "server",
  "federation",
  "conversations",
  "mesh",
  "agents",
];

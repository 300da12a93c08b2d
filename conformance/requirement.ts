/** One rule of a protocol, as data. Tests cite the id in their title: `it("[MAIL-TASK-01] …")`. */
export interface Requirement {
  /** Never reused, never renamed: tests and documents refer to it. */
  readonly id: string;
  /** Document and chapter of the rule. */
  readonly source: string;
  readonly level: "MUST" | "SHOULD" | "ours";
  /** The rule in our own words. */
  readonly rule: string;
  /** The part of Mailroom that implements it. */
  readonly part: Part;
}

export const PARTS = ["engine", "server", "federation", "conversations", "mesh", "agents"] as const;
export type Part = (typeof PARTS)[number];

/** Complete parts: each of their rules must be cited by a test. */
export const FINISHED: readonly Part[] = [
  "engine",
  "server",
  "federation",
  "conversations",
  "mesh",
  "agents",
];

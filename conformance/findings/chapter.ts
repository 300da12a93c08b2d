import type { Requirement } from "../requirement.js";

type Row = readonly [id: string, rule: string];

/** Findings of one kind: each row is the rule that forbids a fault that was found. */
export function chapter(part: Requirement["part"], name: string, rows: readonly Row[]): Requirement[] {
  return rows.map(([id, rule]) => ({ id, level: "ours", part, rule, source: `Mailroom, findings: ${name}` }));
}

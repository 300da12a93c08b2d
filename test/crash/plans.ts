/** The requests to the crash swarm: the body of every message is one of these, as JSON. */
import { isRecord } from "../../src/base/index.js";
import type { Random } from "./random.js";

export const PLAN_KINDS = [
  /** desk → clerk → archive → clerk → desk → complete. */
  "chain",
  /** The desk asks three workers at once, waits for all of them, and completes. */
  "fan",
  /** The same, but the desk completes at the first answer, while others are still working. */
  "race",
  /** The desk runs actions itself, together: some may be repeated and some may not. */
  "act",
  /** The desk waits for a user. */
  "pause",
  /** Workers wait for a user while others run actions. */
  "approvals",
  /** The desk's actions wait for approval, while another one runs. */
  "purchase",
  /** The agent ends the process. */
  "poison",
] as const;

export type PlanKind = (typeof PLAN_KINDS)[number];

export interface Plan {
  readonly kind: PlanKind;
  /** Makes every message different: three identical messages count as a loop (decision B9). */
  readonly nonce: number;
  /** Milliseconds that a turn and an action take. */
  readonly think: number;
  readonly act: number;
}

export function randomPlan(random: Random): Plan {
  return {
    kind: random.pick(["chain", "fan", "fan", "race", "act", "act", "pause", "approvals", "purchase"]),
    nonce: random.whole(1, 1_000_000_000),
    think: random.chance(0.3) ? random.whole(1, 4) : 0,
    act: random.chance(0.7) ? random.whole(1, 15) : 0,
  };
}

export function planOf(text: string | undefined): Plan {
  const plan: unknown = JSON.parse(text ?? "null");
  if (!isPlan(plan)) throw new Error(`invalid plan: ${text}`);
  return plan;
}

function isPlan(value: unknown): value is Plan {
  return (
    isRecord(value) &&
    PLAN_KINDS.some((kind) => kind === value.kind) &&
    typeof value.nonce === "number" &&
    typeof value.think === "number" &&
    typeof value.act === "number"
  );
}

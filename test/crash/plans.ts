/** What a user asks of the crash swarm: the body of every message is one of these, as JSON. */
import { isRecord } from "../../src/mail/record.js";
import type { Random } from "./random.js";

export const PLAN_KINDS = [
  /** desk → clerk → archive → clerk → desk → complete. */
  "chain",
  /** The desk asks three workers at once, waits for all of them, and completes. */
  "fan",
  /** The same, but the desk completes at the first answer, while others are still at work. */
  "race",
  /** The desk runs actions itself: one that may be repeated and one that may not. */
  "act",
  /** The desk waits for a person. */
  "pause",
  /** Workers wait for a person while others act. */
  "approvals",
  /** The agent ends the process. */
  "poison",
] as const;

export type PlanKind = (typeof PLAN_KINDS)[number];

export interface Plan {
  readonly kind: PlanKind;
  /** Makes every message different: saying the same thing three times is a mistake of agents (decisions B9). */
  readonly nonce: number;
  /** Milliseconds that an agent thinks about a turn, and that an action takes. */
  readonly think: number;
  readonly act: number;
}

export function randomPlan(random: Random): Plan {
  return {
    kind: random.pick(["chain", "fan", "fan", "race", "act", "act", "pause", "approvals"]),
    nonce: random.whole(1, 1_000_000_000),
    think: random.chance(0.3) ? random.whole(1, 4) : 0,
    act: random.chance(0.7) ? random.whole(1, 15) : 0,
  };
}

export function planOf(text: string | undefined): Plan {
  const plan: unknown = JSON.parse(text ?? "null");
  if (!isPlan(plan)) throw new Error(`this is no plan: ${text}`);
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

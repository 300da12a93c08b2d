/** Runs one action: checks its arguments, keeps its time limit, and turns whatever comes out into a result. */
import type { AgentToolCall } from "../../mail/calls.js";
import type { Action, ActionContext } from "../agent.js";
import type { Clock } from "../ports.js";
import { StoppedError, type Stopper, type StopReason } from "./stopper.js";

export interface ActionResult {
  readonly ok: boolean;
  readonly content: string;
  readonly unknown?: true;
}

/** Stands between a call and the action; `next` runs the action itself (the library's action override). */
export type ActionOverride = (
  call: AgentToolCall,
  context: ActionContext,
  next: () => Promise<unknown>,
) => unknown;

export interface ActionRun {
  readonly action: Action | undefined;
  readonly call: AgentToolCall;
  readonly context: ActionContext;
  readonly stopper: Stopper;
  readonly clock: Clock;
  readonly timeLimit: number;
  readonly resultLength: number;
  readonly override: ActionOverride | undefined;
}

export const OUTCOME_UNKNOWN = "outcome unknown";

/** Resolves with `undefined` when the run was abandoned (cancellation is journaled elsewhere, shutdown parks it). */
export async function runAction(run: ActionRun): Promise<ActionResult | undefined> {
  const { action, call, context, stopper } = run;
  if (action === undefined && run.override === undefined) {
    return { ok: false, content: `action '${call.name}' is not part of the swarm any more` };
  }
  const cancelTimer = run.clock.after(run.timeLimit, () => stopper.stop("time_limit"));
  try {
    const outcome = await stopper.race(execute(run, action, call, context));
    if (outcome instanceof StoppedError) return afterStop(outcome.reason, call.name, run.timeLimit);
    return outcome;
  } finally {
    cancelTimer();
  }
}

async function execute(
  run: ActionRun,
  action: Action | undefined,
  call: AgentToolCall,
  context: ActionContext,
): Promise<ActionResult> {
  try {
    const plain = async (): Promise<unknown> => {
      if (action === undefined) throw new Error(`action '${call.name}' is not part of the swarm any more`);
      const checked = await action.check(call.args);
      if (!checked.ok) throw new Error(`invalid arguments: ${checked.message}`);
      return action.run(checked.value, context);
    };
    const value = run.override === undefined ? await plain() : await run.override(call, context, plain);
    return { ok: true, content: shorten(show(value), run.resultLength) };
  } catch (error) {
    return { ok: false, content: shorten(describe(error), run.resultLength) };
  }
}

function afterStop(reason: StopReason, name: string, timeLimit: number): ActionResult | undefined {
  if (reason !== "time_limit") return undefined;
  const content = `${OUTCOME_UNKNOWN}: action '${name}' did not finish within ${timeLimit} ms`;
  return { ok: false, content, unknown: true };
}

function show(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "done";
  return JSON.stringify(value) ?? String(value);
}

export function describe(error: unknown): string {
  if (error instanceof Error) return error.message === "" ? error.name : error.message;
  return String(error);
}

function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}… (cut: ${text.length} characters in all)`;
}

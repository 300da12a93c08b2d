/** Runs one action: checks its arguments, keeps its time limit, and turns its outcome into a result. */

import type { Clock } from "../../base/index.js";
import { messageOf } from "../../base/index.js";
import type { AgentToolCall } from "../../mail/index.js";
import type { Action, ActionContext } from "../agent.js";
import { type AbortHandle, StoppedError, type StopReason } from "./abort-handle.js";

export interface ActionResult {
  readonly ok: boolean;
  readonly content: string;
  readonly unknown?: true;
}

/** Runs in place of the action; `next` runs the action itself (the library's action override). */
export type ActionOverride = (
  call: AgentToolCall,
  context: ActionContext,
  next: () => Promise<unknown>,
) => unknown;

export interface ActionRun {
  readonly action: Action | undefined;
  readonly call: AgentToolCall;
  readonly context: ActionContext;
  readonly abortHandle: AbortHandle;
  readonly clock: Clock;
  readonly timeLimit: number;
  readonly resultLength: number;
  readonly override: ActionOverride | undefined;
}

export const OUTCOME_UNKNOWN = "outcome unknown";

/** Resolves with `undefined` when the run was abandoned (cancellation is journaled elsewhere, shutdown parks it). */
export async function runAction(run: ActionRun): Promise<ActionResult | undefined> {
  const { action, call, context, abortHandle } = run;
  if (action === undefined && run.override === undefined) {
    return { ok: false, content: `action '${call.name}' is no longer part of the swarm` };
  }
  const cancelTimer = run.clock.after(run.timeLimit, () => abortHandle.stop("time_limit"));
  try {
    const outcome = await abortHandle.race(execute(run, action, call, context));
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
      if (action === undefined) throw new Error(`action '${call.name}' is no longer part of the swarm`);
      const checked = await action.check(call.args);
      if (!checked.ok) throw new Error(`invalid arguments: ${checked.message}`);
      return action.run(checked.value, context);
    };
    const value = run.override === undefined ? await plain() : await run.override(call, context, plain);
    return { ok: true, content: shorten(show(value), run.resultLength) };
  } catch (error) {
    return { ok: false, content: shorten(messageOf(error), run.resultLength) };
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

function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}… (cut: ${text.length} characters in all)`;
}

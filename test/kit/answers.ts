/** Short forms of agents' answers: `[ask("ann", "how many?"), wait()]`. The caller assigns ids. */
import type { TurnResult } from "../../src/engine/agent.js";
import type { AgentToolCall } from "../../src/mail/calls.js";

export interface PlannedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly id?: string;
}

function planned(name: string, args: Readonly<Record<string, unknown>>): PlannedCall {
  return { name, args };
}

export const ask = (target: string, body: string, subject = "question"): PlannedCall =>
  planned("send_request", { target, subject, body });

export const respond = (target: string, body: string, subject = "answer"): PlannedCall =>
  planned("send_response", { target, subject, body });

export const interrupt = (target: string, body: string, subject = "stop"): PlannedCall =>
  planned("send_interrupt", { target, subject, body });

export const broadcast = (body: string, targets?: readonly string[]): PlannedCall =>
  planned("send_broadcast", { subject: "news", body, ...(targets !== undefined && { targets }) });

export const broadcastToSwarms = (body: string, swarms?: readonly string[]): PlannedCall =>
  planned("send_interswarm_broadcast", {
    subject: "news",
    body,
    ...(swarms !== undefined && { target_swarms: swarms }),
  });

export const complete = (text: string): PlannedCall => planned("task_complete", { finish_message: text });
export const acknowledge = (): PlannedCall => planned("acknowledge_broadcast", {});
export const ignore = (): PlannedCall => planned("ignore_broadcast", {});
export const wait = (reason?: string): PlannedCall =>
  planned("await_message", reason === undefined ? {} : { reason });
export const help = (): PlannedCall => planned("help", {});
export const act = (name: string, args: Readonly<Record<string, unknown>> = {}): PlannedCall =>
  planned(name, args);
export const withId = (id: string, call: PlannedCall): PlannedCall => ({ ...call, id });

export function answerOf(calls: readonly PlannedCall[], id: () => string): TurnResult {
  return { calls: calls.map((call): AgentToolCall => ({ ...call, id: call.id ?? id() })) };
}

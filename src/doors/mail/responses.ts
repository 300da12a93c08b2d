/** The outcome of a message in the form of `POST /message` (decision D1). */
import { eventsUrl, type RoundEnd, type RouteResponse } from "../../extension/index.js";
import { normalizeBreakpointCall } from "../../mail/index.js";
import type { MessageAnswer } from "./schemas/message.js";

export function messageResponse({ taskId, outcome, events }: RoundEnd): RouteResponse {
  if (outcome === undefined) {
    const body: MessageAnswer = { response: null, events, task_id: taskId, status: "running" };
    return { status: 202, body, headers: { location: eventsUrl(taskId) } };
  }
  const { status, message, error, reason, breakpoints, approvals } = outcome;
  const body: MessageAnswer = {
    response: message.message.body,
    events,
    task_id: taskId,
    status,
    ...(error !== undefined && { error }),
    ...(reason !== undefined && { reason }),
    ...(breakpoints !== undefined && { breakpoint: breakpoints.map(normalizeBreakpointCall) }),
    ...(approvals !== undefined && { approvals: approvals.map(normalizeBreakpointCall) }),
  };
  return { status: 200, body };
}

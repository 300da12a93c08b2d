/** Reads the decisions on calls that wait for approval, in the form that every door accepts. */
import { isRecord, MailroomError } from "../base/index.js";
import type { ApprovalDecision } from "./task/commands.js";

/** Decisions in one request. */
export const MOST_DECISIONS = 1_000;

/**
 * A list of `{ call_id, decision: "approve" | "reject", arguments?, reason? }`. Text is never a decision.
 * @param field the name of the list, for the error
 * @throws MailroomError `bad_request` naming the field
 */
export function readDecisions(given: unknown, field = "decisions"): ApprovalDecision[] {
  if (!Array.isArray(given)) throw bad(field, 'must be a list of {"call_id", "decision"}');
  if (given.length > MOST_DECISIONS) throw bad(field, `may have ${MOST_DECISIONS} items`);
  return given.map((item: unknown, index) => readDecision(item, `${field}.${index}`));
}

function readDecision(item: unknown, field: string): ApprovalDecision {
  if (!isRecord(item)) throw bad(field, "must be an object with call_id and decision");
  const { call_id: callId, decision, arguments: args, reason } = item;
  if (typeof callId !== "string" || callId === "") throw bad(`${field}.call_id`, "is required");
  if (decision === "approve") {
    if (reason !== undefined) throw bad(`${field}.reason`, "belongs to a rejection");
    if (args === undefined) return { callId, decision };
    if (!isRecord(args)) throw bad(`${field}.arguments`, "must be an object");
    return { callId, decision, args };
  }
  if (decision !== "reject") throw bad(`${field}.decision`, 'must be "approve" or "reject"');
  if (args !== undefined) throw bad(`${field}.arguments`, "belong to an approval");
  if (reason === undefined) return { callId, decision };
  if (typeof reason !== "string") throw bad(`${field}.reason`, "must be a string");
  return { callId, decision, reason };
}

function bad(field: string, what: string): MailroomError {
  return new MailroomError("bad_request", `${field} ${what}`, { details: { field } });
}

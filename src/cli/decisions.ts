/** `approve` and `reject`: decides the calls of a task that wait for approval. */
import { isRecord, MailroomError } from "../base/index.js";
import type { ApprovalDecision, MailClient } from "../client/index.js";

export interface DecisionOptions {
  /** JSON text. */
  readonly arguments?: string;
  readonly reason?: string;
}

/** @throws MailroomError `usage` if it is not clear which calls are meant, or the arguments are not a JSON object */
export async function decideCalls(
  client: MailClient,
  key: string,
  decision: ApprovalDecision["decision"],
  named: readonly string[],
  options: DecisionOptions,
): Promise<readonly string[]> {
  const args = options.arguments === undefined ? undefined : parseArguments(options.arguments);
  const { calls } = await client.getApproval(key);
  const waiting = calls.filter(({ kind }) => kind === "approval").map(({ call_id }) => call_id);
  const ids = named.length > 0 ? named : waiting;
  if (named.length === 0 && waiting.length !== 1) {
    const message =
      waiting.length === 0 ? "no call waits for approval" : `${waiting.length} calls wait for approval`;
    const hint = waiting.length === 0 ? "breakpoints take an answer" : `name them: ${waiting.join(" ")}`;
    throw new MailroomError("usage", message, { details: { hint } });
  }
  if (args !== undefined && ids.length > 1) {
    throw new MailroomError("usage", "--arguments changes one call at a time");
  }
  const { reason } = options;
  await client.decideApproval(
    key,
    ids.map((call_id) =>
      decision === "approve"
        ? { call_id, decision, ...(args !== undefined && { arguments: args }) }
        : { call_id, decision, ...(reason !== undefined && { reason }) },
    ),
  );
  return ids;
}

function parseArguments(text: string): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (isRecord(parsed) && !Array.isArray(parsed)) return parsed;
  throw new MailroomError("usage", "--arguments must be a JSON object, such as '{\"amount\": 5}'");
}

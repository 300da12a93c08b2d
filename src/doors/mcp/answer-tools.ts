/** The tools that answer tasks which wait for a person: the caller's own, and those that the caller was named for. */
import { z } from "zod";
import { MailroomError } from "../../base/index.js";
import { MOST_DECISIONS, readDecisions } from "../../engine/index.js";
import type { Answerer, AnswersForOthers } from "../../extension/index.js";
import type { Approval, Instance } from "../../library/index.js";
import { addTool, type ToolAnswer, type ToolHost } from "./tool.js";
import { task_id, wait_seconds, waitFor } from "./user-tools.js";

export interface AnswerToolParts {
  readonly caller: Answerer;
  readonly instance: Instance;
  readonly answers: AnswersForOthers;
}

/** Which task is answered. */
const WHICH = {
  task_id: task_id.optional().describe("The id of your own task"),
  key: z.string().min(1).max(64).optional().describe("For another owner's task: its key in list_approvals"),
};

export function addAnswerTools(host: ToolHost, { caller, instance, answers }: AnswerToolParts): void {
  addTool(host, {
    name: "answer_breakpoint",
    description: "Answers the calls that a paused task waits for, and waits for the result.",
    input: z.strictObject({
      ...WHICH,
      content: z.string().optional().describe("The answer, if one call waits"),
      results: z
        .array(z.strictObject({ call_id: z.string(), content: z.string() }))
        .optional()
        .describe("One answer for each call, if several wait"),
      wait_seconds,
    }),
    run: async ({ task_id: taskId, key, content, results, wait_seconds: wait }, call) => {
      const given =
        results?.map((result) => ({ callId: result.call_id, content: result.content })) ?? content;
      if (given === undefined) throw new MailroomError("bad_input", "set either content or results");
      const which = whichTask(taskId, key);
      if ("key" in which) {
        await answers.answer(caller, which.key, given);
        return answered(which.key);
      }
      const task = await instance.requireTask(which.taskId);
      return waitFor(task, await task.answerLater(given), wait, call);
    },
  });
  addTool(host, {
    name: "decide_calls",
    description:
      "Approves or rejects calls of a paused task that wait for approval, as the user decided, and waits for the result.",
    input: z.strictObject({
      ...WHICH,
      decisions: z
        .array(
          z.strictObject({
            call_id: z.string(),
            decision: z.enum(["approve", "reject"]),
            arguments: z
              .record(z.string(), z.unknown())
              .optional()
              .describe("Of an approval: changed arguments"),
            reason: z.string().optional().describe("Of a rejection: shown to the agent"),
          }),
        )
        .min(1)
        .max(MOST_DECISIONS),
      wait_seconds,
    }),
    run: async ({ task_id: taskId, key, decisions, wait_seconds: wait }, call) => {
      const which = whichTask(taskId, key);
      if ("key" in which) {
        await answers.decide(caller, which.key, decisions);
        return answered(which.key);
      }
      const task = await instance.requireTask(which.taskId);
      return waitFor(task, await task.decideLater(readDecisions(decisions)), wait, call);
    },
  });
  addTool(host, {
    name: "list_approvals",
    description:
      "Lists tasks of other owners that wait for you because the owner named you. Answer with decide_calls or " +
      "answer_breakpoint, as the user decided.",
    readOnly: true,
    input: z.strictObject({
      cursor: z
        .string()
        .min(1)
        .max(64)
        .optional()
        .describe("next_cursor of the last answer, for older tasks"),
    }),
    run: async ({ cursor }) => {
      await host.reading();
      const page = await answers.list(caller, cursor === undefined ? {} : { cursor });
      const approvals = page.approvals.map(shown);
      const lines = approvals.map((approval) => JSON.stringify(approval));
      const { nextCursor } = page;
      if (nextCursor !== undefined) lines.push(`there may be more: cursor ${nextCursor}`);
      return {
        text: lines.length === 0 ? "nothing waits for you" : lines.join("\n"),
        data: { approvals, ...(nextCursor !== undefined && { next_cursor: nextCursor }) },
      };
    },
  });
}

function whichTask(
  taskId: string | undefined,
  key: string | undefined,
): { taskId: string } | { key: string } {
  if (key !== undefined && taskId === undefined) return { key };
  if (taskId !== undefined && key === undefined) return { taskId };
  throw new MailroomError("bad_input", "set either task_id or key");
}

/** An approver does not see what the task does next. */
function answered(key: string): ToolAnswer {
  return { text: "answered; the task continues", data: { key, status: "answered" } };
}

function shown({ key, owner, title, since, right, calls }: Approval) {
  return {
    key,
    task_owner: owner,
    title: title ?? null,
    since: new Date(since).toISOString(),
    right,
    calls: calls.map(({ agent, call: { id, name, args }, kind, expires }) => ({
      agent,
      call_id: id,
      name,
      args,
      kind,
      ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
    })),
  };
}

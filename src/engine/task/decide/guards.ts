/** The checks after every decision: has the task failed, reached its step limit, or become idle? */
import { createAgentAddress, formatTaskContributor } from "../../../mail/index.js";
import { isFromPerson, type TaskState } from "../state.js";
import { stepLimitText, TASK_IDLE, unknownAgentText } from "../system-messages.js";
import type { DecisionBuilder } from "./decision-builder.js";
import { fail } from "./endings.js";

export function guard(draft: DecisionBuilder): void {
  if (draft.trouble !== undefined && draft.state.status === "running") {
    const { code, reason } = draft.trouble;
    draft.trouble = undefined;
    fail(draft, code, reason);
  }
  returnMailOfGoneAgents(draft);
  if (draft.state.status !== "running") return;
  if (!draft.rules.agents.has(draft.state.entrypoint)) {
    fail(
      draft,
      "entrypoint_missing",
      `the entrypoint '${draft.state.entrypoint}' is no longer part of the swarm`,
    );
    return;
  }
  enforceStepLimit(draft);
  noticeIdleness(draft);
}

/** An agent that was removed is an unknown recipient (decision B17). */
function returnMailOfGoneAgents(draft: DecisionBuilder): void {
  for (const [name, agent] of draft.state.agents) {
    if (draft.rules.agents.has(name) || agent.mailbox.length === 0 || draft.state.status !== "running")
      continue;
    const mails = agent.mailbox.map((mail) => mail.message);
    const took = agent.mailbox.map((mail) => mail.number);
    const message = "the agent is no longer part of the swarm";
    draft.emit({ t: "turn_failed", at: draft.at, agent: name, took, code: "unknown_agent", message });
    for (const { message, msg_type } of mails) {
      if (message.sender.address_type !== "agent") continue;
      const requestId = msg_type === "request" ? message.request_id : undefined;
      draft.tell(message.sender, unknownAgentText(name), requestId, name);
    }
    if (mails.some(isFromPerson)) {
      fail(draft, "unknown_agent", `agent '${name}' is no longer part of the swarm`);
    }
  }
}

/** At the step limit the entrypoint gets one last turn to complete the task (decision B8). */
function enforceStepLimit(draft: DecisionBuilder): void {
  const { state } = draft;
  const { maxSteps } = state;
  // With a limit of 0 the user's own message would never be taken, and each ending would resume the task.
  if (maxSteps === undefined || state.lastTurn !== undefined || state.steps < Math.max(1, maxSteps)) return;
  if (!anotherStepWaits(state)) return;
  if (draft.agentRules(state.entrypoint)?.canCompleteTasks !== true) {
    fail(draft, "step_limit", `the task was not completed within ${maxSteps} steps`);
    return;
  }
  draft.tell(createAgentAddress(state.entrypoint), stepLimitText(state, maxSteps));
  draft.emit({ t: "step_limit", at: draft.at, notice: state.number });
}

function anotherStepWaits(state: TaskState): boolean {
  for (const agent of state.agents.values()) {
    for (const { message } of agent.mailbox) {
      if (message.message.sender.address_type !== "system" && !state.stepped.has(message.id)) return true;
    }
  }
  return false;
}

/** An idle task is reported to its entrypoint once; if it is idle again, it fails (decision B10). */
function noticeIdleness(draft: DecisionBuilder): void {
  const { state } = draft;
  if (state.status !== "running" || state.manual || !isIdle(state) || !isOwn(state)) return;
  if (state.idleTold) {
    fail(draft, "idle", "no agent had anything left to do, and none completed the task");
    return;
  }
  draft.emit({ t: "idle", at: draft.at });
  draft.tell(createAgentAddress(state.entrypoint), TASK_IDLE);
}

function isOwn(state: TaskState): boolean {
  const { role, id } = state.instance;
  return state.owner === formatTaskContributor({ role, id, swarm: state.swarm });
}

/** The message of a running turn is still in the mailbox, so the state alone shows whether the task is idle. */
export function isIdle(state: TaskState): boolean {
  for (const agent of state.agents.values()) {
    if (agent.mailbox.length > 0 || agent.turn !== undefined || agent.open.length > 0) return false;
  }
  return state.outbound.length === 0 && !state.outstanding.some((request) => request.remote);
}

/** What is looked at after every decision: has the task gone wrong, come to its limit, or fallen asleep? */
import { createAgentAddress } from "../../mail/address.js";
import { formatTaskContributor } from "../../mail/owner.js";
import { isFromPerson, type TaskState } from "../state.js";
import { stepLimitText, TASK_IDLE, unknownAgentText } from "../system-messages.js";
import type { Draft } from "./draft.js";
import { fail } from "./endings.js";

export function guard(draft: Draft): void {
  if (draft.trouble !== undefined && draft.state.status === "running") {
    const { code, reason } = draft.trouble;
    draft.trouble = undefined;
    fail(draft, code, reason);
  }
  returnMailOfGoneAgents(draft);
  if (draft.state.status !== "running") return;
  if (!draft.rules.agents.has(draft.state.entrypoint)) {
    fail(draft, "entrypoint_missing", `the swarm has no agent '${draft.state.entrypoint}' any more`);
    return;
  }
  enforceStepLimit(draft);
  noticeIdleness(draft);
}

/** Decisions B17: an agent that is gone is an unknown recipient. */
function returnMailOfGoneAgents(draft: Draft): void {
  for (const [name, agent] of draft.state.agents) {
    if (draft.rules.agents.has(name) || agent.mailbox.length === 0 || draft.state.status !== "running")
      continue;
    const mails = agent.mailbox.map((mail) => mail.message);
    const took = agent.mailbox.map((mail) => mail.number);
    const message = "the agent is not part of the swarm any more";
    draft.emit({ t: "turn_failed", at: draft.at, agent: name, took, code: "unknown_agent", message });
    for (const { message, msg_type } of mails) {
      if (message.sender.address_type !== "agent") continue;
      const requestId = msg_type === "request" ? message.request_id : undefined;
      draft.tell(message.sender, unknownAgentText(name), requestId, name);
    }
    if (mails.some(isFromPerson)) {
      fail(draft, "unknown_agent", `there is no agent '${name}' in this swarm any more`);
    }
  }
}

/** Decisions B8. */
function enforceStepLimit(draft: Draft): void {
  const { state } = draft;
  const { maxSteps } = state;
  // Without a single step the person's own message would never be taken, and each ending would resume the task.
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

/** Decisions B10. */
function noticeIdleness(draft: Draft): void {
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

/** A turn under way still has its message in the mailbox, so the state alone tells. */
export function isIdle(state: TaskState): boolean {
  for (const agent of state.agents.values()) {
    if (agent.mailbox.length > 0 || agent.turn !== undefined || agent.open.length > 0) return false;
  }
  return state.outbound.length === 0 && !state.outstanding.some((request) => request.remote);
}

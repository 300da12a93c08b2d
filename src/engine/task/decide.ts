/**
 * Decides which entries follow from a command. No clock, no randomness, no I/O: the same state, command and decision
 * context always give the same entries.
 *
 * A refusal leaves the state unchanged. Otherwise the state has evolved by exactly the returned entries; a caller that
 * cannot commit them must discard the state and rebuild it from the journal.
 */
import { isEndingNotice, MAIL_ALL_LOCAL_AGENTS, SYSTEM_SUBJECTS } from "../../mail/index.js";
import { changedLimits } from "../usage.js";
import { type Actor, actorName, answerRight, checkApprovers } from "./approvers.js";
import type {
  AnswerBreakpoint,
  AnswerLent,
  AnswerTurn,
  BreakpointResult,
  Command,
  Decision,
  DecisionContext,
  NameApprovers,
  OpenTask,
  PostMessage,
  Refusal,
  SetBudget,
} from "./commands.js";
import { agentsThatWait, answerApprovals, approvalNeeded, expireApprovals } from "./decide/approvals.js";
import { DecisionBuilder } from "./decide/decision-builder.js";
import {
  abandon,
  cancel,
  complete,
  fail,
  hold,
  leaveNoCallOpen,
  noteDefinition,
  pauseForApproval,
  resume,
  timeOut,
} from "./decide/endings.js";
import { guard, isIdle } from "./decide/guards.js";
import {
  conclude,
  copyEvents,
  noteDelivered,
  notifyOfMissingReplies,
  notifyOfNoReply,
  replyToPerson,
} from "./decide/interswarm.js";
import { continueTurns, failTurn, takeTurn } from "./decide/turn.js";
import { type Entry, JOURNAL_VERSION, type Opened, type TaskHeader } from "./entries.js";
import { open } from "./evolve.js";
import type { SwarmRules } from "./rules.js";
import { askedCalls, isFromPerson, type MailboxItem, type TaskState } from "./state.js";
import { BREAKPOINT_ANSWERED, routerErrorText, undeliveredAnswerText } from "./system-messages.js";

export function openTask(command: OpenTask, rules: SwarmRules, moment: DecisionContext): Decision {
  const refusal = checkRecipients(command.to, rules, command.remote);
  if (refusal !== undefined) return refuse(refusal);
  const { maxSteps: asked, ...header } = command.task;
  const task: { -readonly [K in keyof TaskHeader]: TaskHeader[K] } = header;
  const maxSteps = asked === undefined ? rules.limits.maxSteps || undefined : (asked ?? undefined);
  if (maxSteps !== undefined) task.maxSteps = maxSteps;
  if (rules.limits.taskTimeout > 0) task.deadline = moment.at + rules.limits.taskTimeout;
  const opened: Opened = { t: "opened", v: JOURNAL_VERSION, at: moment.at, task, definition: rules.hash };
  const entries: Entry[] = [opened];
  const draft = new DecisionBuilder(open(opened), rules, moment, entries);
  draft.send(command.message, { to: command.to, remote: command.remote ?? [] });
  guard(draft);
  return accept(draft);
}

export function decide(
  state: TaskState,
  command: Command,
  rules: SwarmRules,
  moment: DecisionContext,
): Decision {
  const draft = new DecisionBuilder(state, rules, moment);
  const refusal = carryOutCommand(draft, command);
  if (refusal !== undefined) {
    if (draft.entries.length > 0)
      throw new Error(`'${command.type}' was refused after it had emitted entries`);
    return refuse(refusal);
  }
  guard(draft);
  return accept(draft);
}

function carryOutCommand(draft: DecisionBuilder, command: Command): Refusal | undefined {
  const { state } = draft;
  switch (command.type) {
    case "post":
      return post(draft, command);
    case "answer_breakpoint":
      return answerBreakpoint(draft, command);
    case "name_approvers":
      return nameApprovers(draft, command);
    case "answer_approvals":
      if (command.by !== undefined && answerRight(state, command.by) === undefined) {
        return mayNot(command.by, "answer for");
      }
      return answerApprovals(draft, command);
    case "approval_time":
      expireApprovals(draft);
      return undefined;
    case "answer":
      return answerTurn(draft, command);
    case "answer_lent":
      return answerLent(draft, command);
    case "fail_lent": {
      const mail = lentMail(state, command);
      if (mail === undefined) return staleAttempt(command.agent, command.attempt);
      failTurn(draft, [mail], { agent: command.agent, code: "agent_error", message: command.message });
      return undefined;
    }
    case "fail_turn": {
      const mails = takenMails(state, command.agent, command.took);
      if (mails === undefined) return staleTurn(command.agent);
      failTurn(draft, mails, command);
      return undefined;
    }
    case "hold_turn":
      if (takenMails(state, command.agent, command.took) === undefined) return staleTurn(command.agent);
      hold(draft, command);
      return undefined;
    case "count_usage": {
      const { type: _, ...counted } = command;
      draft.emit({ t: "usage", at: draft.at, ...counted });
      return undefined;
    }
    case "set_budget":
      return setBudget(draft, command);
    case "retry":
      // Calls that wait for a person keep the task paused.
      if (state.held !== undefined && agentsThatWait(state).length === 0) resume(draft);
      return undefined;
    case "finish_action": {
      const turn = state.agents.get(command.agent)?.turn;
      const running = turn?.running.find(({ call }) => call.id === command.callId);
      if (turn === undefined || running === undefined) return staleTurn(command.agent);
      draft.emit({
        t: "action_finished",
        at: draft.at,
        agent: command.agent,
        call: command.callId,
        name: running.call.name,
        ok: command.ok,
        content: command.content,
        ...(command.unknown === true && { unknown: true as const }),
      });
      continueTurns(draft, command.agent, turn);
      return undefined;
    }
    case "restart_action": {
      const turn = state.agents.get(command.agent)?.turn;
      const running = turn?.running.find(({ call }) => call.id === command.callId);
      if (running === undefined) return staleTurn(command.agent);
      draft.emit({
        t: "action_started",
        at: draft.at,
        agent: command.agent,
        call: command.callId,
        name: running.call.name,
        attempt: running.attempt + 1,
      });
      return undefined;
    }
    case "recover": {
      const mails = takenMails(state, command.agent, command.took);
      if (mails === undefined) return staleTurn(command.agent);
      const [number] = command.took;
      draft.emit({
        t: "recovered",
        at: draft.at,
        agent: command.agent,
        ...(number !== undefined && { number }),
      });
      const recoveries = state.agents.get(command.agent)?.recoveries ?? 0;
      if (recoveries >= draft.rules.limits.recoveries) {
        const message = `the process ended ${recoveries} times while this message was being handled`;
        failTurn(draft, mails, { agent: command.agent, code: "agent_error", message });
      }
      return undefined;
    }
    case "park":
      if (takenMails(state, command.agent, command.took) === undefined) return staleTurn(command.agent);
      draft.emit({ t: "parked", at: draft.at, agent: command.agent });
      return undefined;
    case "fail":
      if (state.status === "running") abandon(draft, command.code, command.reason);
      return undefined;
    case "cancel":
      if (hasEnded(state)) {
        return { code: "already_ended", message: `task '${state.taskId}' is already ${state.status}` };
      }
      cancel(draft, command.by);
      return undefined;
    case "time_limit":
      if (command.deadline !== undefined && command.deadline !== state.deadline) return undefined;
      if (state.status === "running") timeOut(draft);
      return undefined;
    case "lend":
      return lend(draft, command.agent);
    case "release": {
      const lent = state.agents.get(command.agent)?.lent;
      if (lent?.attempt !== command.attempt) return staleAttempt(command.agent, command.attempt);
      draft.emit({ t: "released", at: draft.at, agent: command.agent, attempt: command.attempt });
      return undefined;
    }
    case "carried":
      carried(draft, command);
      return undefined;
    case "manual_step":
      return manualStep(draft, command);
    case "notify": {
      const text = { subject: command.subject, body: command.body };
      if (command.agent === undefined) draft.tellAll(text);
      else draft.tell({ address_type: "agent", address: command.agent }, text);
      return undefined;
    }
    case "conclude":
      conclude(draft, command);
      return undefined;
    case "reply_to_person":
      replyToPerson(draft, command, isIdle, (of, message) => complete(of, message, undefined));
      return undefined;
    case "reply_time":
      notifyOfMissingReplies(draft);
      return undefined;
    case "no_reply":
      notifyOfNoReply(draft, command);
      return undefined;
    case "copy_events":
      copyEvents(draft, command);
      return undefined;
    case "redefine":
      noteDefinition(draft);
      return undefined;
  }
}

function post(draft: DecisionBuilder, command: PostMessage): Refusal | undefined {
  const { state, rules } = draft;
  const unknown = checkRecipients(command.to, rules, command.remote);
  if (unknown !== undefined) return unknown;
  for (const name of command.to) {
    const waiting = state.agents.get(name)?.mailbox.length ?? 0;
    if (waiting >= rules.limits.mailbox) {
      return { code: "mailbox_full", message: `${waiting} messages already wait for agent '${name}'` };
    }
  }
  if (command.refuseInApproval === true && askedCalls(state).length > 0) return approvalNeeded(state);
  draft.contribute(command.contributors);
  if (command.budget !== undefined) {
    const limits = changedLimits(state.budget ?? {}, command.budget);
    draft.emit({ t: "budget", at: draft.at, limits, by: `${state.instance.role}:${state.instance.id}` });
  }
  noteDelivered(draft, command.message);
  const goesOn = state.status !== "running" && (isFromPerson(command.message) || command.resumes === true);
  draft.send(command.message, { to: command.to, remote: command.remote ?? [] });
  if (goesOn) {
    const interrupted = agentsThatWait(state).filter((name) => !command.to.includes(name));
    leaveNoCallOpen(draft, "not answered");
    resume(draft, command.maxSteps);
    for (const name of interrupted) {
      // An agent whose turn continues is woken at its end.
      if (state.agents.get(name)?.turn === undefined) draft.wake(name, BREAKPOINT_ANSWERED);
    }
  }
  return undefined;
}

function agentsWithOpenCalls(state: TaskState): string[] {
  return [...state.agents].filter(([, agent]) => agent.open.length > 0).map(([name]) => name);
}

function nameApprovers(draft: DecisionBuilder, { approvers, by }: NameApprovers): Refusal | undefined {
  const right = answerRight({ ...draft.state, approvers: undefined }, by);
  if (right === undefined) return mayNot(by, "name approvers for");
  const problem = checkApprovers(approvers);
  if (problem !== undefined) return { code: "bad_approvers", message: problem };
  const distinct = [...new Set(approvers)];
  draft.emit({ t: "approvers", at: draft.at, approvers: distinct, by: actorName(by) });
  return undefined;
}

/** Owners set limits on their tasks; admins set those that replace the configured ones. */
function setBudget(draft: DecisionBuilder, command: SetBudget): Refusal | undefined {
  const { state, at } = draft;
  const { by } = command;
  const isOwner = by.role === state.instance.role && by.id === state.instance.id;
  if (command.admin === true ? by.role !== "admin" : !isOwner) return mayNot(by, "change this budget of");
  const unknown = Object.keys(command.agents ?? {}).find((name) => !draft.rules.agents.has(name));
  if (unknown !== undefined) {
    return { code: "unknown_agent", message: `the swarm has no agent '${unknown}'` };
  }
  if (command.admin !== true) {
    const limits = changedLimits(state.budget ?? {}, command.limits);
    draft.emit({ t: "budget", at, limits, by: actorName(by) });
    return undefined;
  }
  const agents = { ...state.adminBudget?.agents };
  for (const [name, change] of Object.entries(command.agents ?? {})) {
    agents[name] = { ...agents[name], ...change };
  }
  const limits = { ...state.adminBudget?.limits, ...command.limits };
  draft.emit({ t: "budget", at, limits, agents, by: actorName(by), admin: true });
  return undefined;
}

function mayNot(by: Actor, what: string): Refusal {
  return { code: "forbidden", message: `${actorName(by)} may not ${what} this task` };
}

/** Resumes a paused task with the results of its open breakpoint calls; every open call needs one (decision B7). */
function answerBreakpoint(draft: DecisionBuilder, command: AnswerBreakpoint): Refusal | undefined {
  const { state } = draft;
  const { by } = command;
  if (by !== undefined && answerRight(state, by) === undefined) return mayNot(by, "answer for");
  const open = new Map<string, { agent: string; name: string }>();
  for (const [agent, { open: calls }] of state.agents) {
    for (const call of calls) open.set(call.id, { agent, name: call.name });
  }
  if (open.size === 0 && askedCalls(state).length > 0) return approvalNeeded(state);
  if (state.status !== "paused" || open.size === 0) {
    return {
      code: "not_paused",
      message: `task '${state.taskId}' is ${state.status} and does not wait for a breakpoint result`,
    };
  }
  const callers = agentsWithOpenCalls(state);
  if (command.caller !== undefined && !callers.includes(command.caller)) {
    return {
      code: "unknown_agent",
      message: `agent '${command.caller}' does not wait for a result; these agents do: ${callers.join(", ")}`,
    };
  }
  const results = matchResults(command.results, [...open.keys()]);
  if ("code" in results) return results;
  const woken = new Set<string>();
  for (const { callId, content } of results) {
    const call = open.get(callId);
    if (call === undefined) continue;
    woken.add(call.agent);
    draft.emit({
      t: "result",
      at: draft.at,
      agent: call.agent,
      call: callId,
      name: call.name,
      ok: true,
      content,
      breakpoint: true,
      ...(by !== undefined && { by: actorName(by) }),
    });
  }
  const [waiting] = askedCalls(state);
  if (waiting === undefined) resume(draft, command.maxSteps);
  else pauseForApproval(draft, waiting.agent);
  for (const agent of woken) draft.wake(agent, BREAKPOINT_ANSWERED);
  return undefined;
}

function matchResults(
  given: AnswerBreakpoint["results"],
  open: readonly string[],
): readonly BreakpointResult[] | Refusal {
  if ("content" in given) {
    const [only] = open;
    if (open.length === 1 && only !== undefined) return [{ callId: only, content: given.content }];
    return missingResults(open);
  }
  const answered = new Set(given.map((result) => result.callId));
  const unknown = [...answered].filter((id) => !open.includes(id));
  if (unknown.length > 0) {
    return {
      code: "unknown_calls",
      message: `these calls do not wait for a result: ${unknown.join(", ")}; these do: ${open.join(", ")}`,
      details: { unknown, open },
    };
  }
  if (answered.size < given.length) {
    return {
      code: "bad_answer",
      message: "each open call takes one result; at least one call was given several",
    };
  }
  const missing = open.filter((id) => !answered.has(id));
  return missing.length > 0 ? missingResults(missing) : given;
}

function missingResults(missing: readonly string[]): Refusal {
  return {
    code: "missing_results",
    message: `a result is needed for each open call; missing: ${missing.join(", ")}`,
    details: { missing },
  };
}

function answerTurn(draft: DecisionBuilder, command: AnswerTurn): Refusal | undefined {
  const mails = takenMails(draft.state, command.agent, command.took);
  const rules = draft.agentRules(command.agent);
  if (mails === undefined || rules === undefined) return staleTurn(command.agent);
  if (isEmptyAnswer(command.answer)) {
    const { usage } = command.answer;
    failTurn(draft, mails, {
      agent: command.agent,
      code: "agent_error",
      message: "it returned neither text nor a tool call",
      ...(usage !== undefined && { usage }),
      ...(command.counted !== undefined && { counted: command.counted }),
    });
  } else {
    takeTurn(draft, rules, mails, command.answer, command.vetted, command.counted);
  }
  return undefined;
}

function answerLent(draft: DecisionBuilder, command: AnswerLent): Refusal | undefined {
  const mail = lentMail(draft.state, command);
  if (mail === undefined) return staleAttempt(command.agent, command.attempt);
  if (isEmptyAnswer(command.answer)) {
    return { code: "bad_answer", message: "an answer needs at least one tool call, or text" };
  }
  const rules = draft.agentRules(command.agent);
  if (rules === undefined) return staleTurn(command.agent);
  takeTurn(draft, rules, [mail], command.answer, command.vetted);
  return undefined;
}

/** The message, if this attempt at it is the one that is lent. */
function lentMail(
  state: TaskState,
  { agent: name, messageId, attempt }: Pick<AnswerLent, "agent" | "messageId" | "attempt">,
): MailboxItem | undefined {
  const agent = state.agents.get(name);
  const { lent } = agent ?? {};
  if (lent === undefined || lent.attempt !== attempt) return undefined;
  const mail = agent?.mailbox.find((waiting) => waiting.number === lent.number);
  return mail?.message.id === messageId ? mail : undefined;
}

/** One message of a task is lent at a time; lending it again invalidates the older attempt (decision B18). */
function lend(draft: DecisionBuilder, name: string): Refusal | undefined {
  const agent = draft.state.agents.get(name);
  const mail = mailToLend(draft.state, name);
  if (agent === undefined || mail === undefined) {
    return { code: "no_mail", message: `no mail is waiting for agent '${name}'` };
  }
  // Earlier versions lent notices of an ended round, which are no longer in the mailbox.
  const lent = agent.mailbox.find(({ number }) => number === agent.lent?.number);
  const { number } = lent ?? mail;
  draft.emit({ t: "lent", at: draft.at, agent: name, number, attempt: agent.lendings + 1 });
  return undefined;
}

/** The mail that a remote agent may be lent now: the same that a local agent would take. */
export function mailToLend(state: TaskState, name: string): MailboxItem | undefined {
  const agent = state.agents.get(name);
  if (agent === undefined || agent.turn !== undefined || state.status !== "running") return undefined;
  if (state.lastTurn !== undefined) return agent.mailbox.find((mail) => mail.number === state.lastTurn);
  return state.manual ? agent.mailbox.find((mail) => mail.manual !== undefined) : agent.mailbox[0];
}

function carried(draft: DecisionBuilder, command: Extract<Command, { type: "carried" }>): void {
  const { state } = draft;
  const out = state.outbound.find(
    (waiting) => waiting.message.id === command.messageId && waiting.swarm === command.swarm,
  );
  if (out === undefined) {
    // The answer was faster than the outbox.
    if (command.ok && state.remoteSwarms.includes(command.swarm)) draft.contribute(command.contributors);
    return;
  }
  draft.emit({
    t: "carried",
    at: draft.at,
    message: command.messageId,
    swarm: command.swarm,
    ok: command.ok,
    ...(command.reason !== undefined && { reason: command.reason }),
    ...(command.contributors !== undefined && { contributors: command.contributors }),
  });
  // No agent waits for the delivery result of an ending.
  if (command.ok || isEndingNotice(out.message)) return;
  const { sender, subject } = out.message.message;
  const reason = command.reason ?? "unknown reason";
  if (out.message.msg_type === "response" && sender.address_type === "agent") {
    const mayRepeat = draft.agentRules(sender.address)?.tools.has("send_response") === true;
    const notice = undeliveredAnswerText(command.swarm, subject, reason, mayRepeat);
    draft.tellUndelivered(sender, notice, out.message.id);
    return;
  }
  const text = routerErrorText(command.swarm, subject, reason);
  const request = out.message.msg_type === "request" ? out.message.message : undefined;
  if (sender.address_type === "agent") {
    draft.tell(sender, text, request?.request_id, request?.recipient.address);
  } else if (sender.address_type !== "system") undeliverable(draft, text.body);
}

/** A user's mail was not delivered. A paused task also fails, because after resuming it would wait for the answer. */
function undeliverable(draft: DecisionBuilder, reason: string): void {
  if (draft.state.status === "paused") fail(draft, "undeliverable", reason);
  else draft.trouble ??= { code: "undeliverable", reason };
}

function manualStep(
  draft: DecisionBuilder,
  command: Extract<Command, { type: "manual_step" }>,
): Refusal | undefined {
  const { state } = draft;
  if (!state.manual) {
    return {
      code: "not_manual",
      message: `task '${state.taskId}' is not in manual mode and accepts no manual steps`,
    };
  }
  const unknown = checkRecipients([command.agent], draft.rules);
  if (unknown !== undefined) return unknown;
  if (state.status !== "running") {
    return { code: "wrong_state", message: `task '${state.taskId}' is ${state.status}` };
  }
  const agent = state.agents.get(command.agent);
  if (agent?.turn !== undefined || agent?.mailbox.some((mail) => mail.manual !== undefined)) {
    return { code: "busy", message: `agent '${command.agent}' is still running a step` };
  }
  draft.wake(
    command.agent,
    { subject: SYSTEM_SUBJECTS.manualStep, body: command.payload },
    { manual: command.reply },
  );
  return undefined;
}

/** The mail that the turn took. Undefined if it is no longer in the mailbox (cancelled, or already answered). */
function takenMails(state: TaskState, name: string, took: readonly number[]): MailboxItem[] | undefined {
  const agent = state.agents.get(name);
  if (agent === undefined || agent.turn !== undefined || took.length === 0) return undefined;
  const mails: MailboxItem[] = [];
  for (const number of took) {
    const mail = agent.mailbox.find((waiting) => waiting.number === number);
    if (mail === undefined) return undefined;
    mails.push(mail);
  }
  return mails;
}

function checkRecipients(
  names: readonly string[],
  rules: SwarmRules,
  remote: readonly string[] = [],
): Refusal | undefined {
  const unknown = names.filter((name) => !rules.agents.has(name));
  if (unknown.length === 0 && names.length + remote.length > 0) return undefined;
  const known = [...rules.agents.keys()].filter((name) => name !== MAIL_ALL_LOCAL_AGENTS).join(", ");
  const message =
    names.length === 0
      ? `a message needs a recipient; the agents are: ${known}`
      : `unknown agent ${unknown.map((name) => `'${name}'`).join(", ")}; the agents are: ${known}`;
  return { code: "unknown_agent", message };
}

function isEmptyAnswer(answer: { readonly text?: string; readonly calls: readonly unknown[] }): boolean {
  return answer.calls.length === 0 && (answer.text === undefined || answer.text.trim() === "");
}

function hasEnded(state: TaskState): boolean {
  return state.status === "completed" || state.status === "failed" || state.status === "cancelled";
}

function staleTurn(agent: string): Refusal {
  return {
    code: "stale_turn",
    message: `the message that agent '${agent}' answered no longer waits for an answer`,
  };
}

function staleAttempt(agent: string, attempt: number): Refusal {
  return {
    code: "stale_attempt",
    message: `attempt ${attempt} of agent '${agent}' is no longer valid: the message was lent again, answered or withdrawn`,
  };
}

function refuse(refusal: Refusal): Decision {
  return { ok: false, refusal };
}

function accept(draft: DecisionBuilder): Decision {
  return { ok: true, state: draft.state, entries: draft.entries };
}

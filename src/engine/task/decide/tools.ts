/** Executes the MAIL tools. Each leaves exactly one result for its call, or the reason why the call failed. */

import type { AgentToolCall, MailToolName } from "../../../mail/index.js";
import {
  buildBroadcast,
  buildHelp,
  buildRequest,
  buildResponse,
  checkToolArguments,
  convertCallToMailMessage,
  createAgentAddress,
  isInterswarmAddress,
  isSystemSubject,
  MAIL_ALL_LOCAL_AGENTS,
  type MAILMessage,
  normalizeAddress,
  parseAgentAddress,
  SYSTEM_SUBJECTS,
} from "../../../mail/index.js";
import type { ManualReply, TurnError } from "../entries.js";
import type { AgentRules } from "../rules.js";
import { type OngoingTurn, senderOf, type TaskState } from "../state.js";
import { type DecisionBuilder, type Routes, routesOf } from "./decision-builder.js";
import { complete } from "./endings.js";

export function callMailTool(
  draft: DecisionBuilder,
  rules: AgentRules,
  turn: OngoingTurn,
  call: AgentToolCall,
  name: Exclude<MailToolName, "discover_swarms">,
): TurnError | undefined {
  switch (name) {
    case "send_request":
    case "send_response":
    case "send_interrupt":
    case "send_broadcast":
    case "send_interswarm_broadcast":
      return sendMail(draft, rules, call);
    case "task_complete":
      return completeTask(draft, rules, call);
    case "acknowledge_broadcast":
    case "ignore_broadcast":
      return settleBroadcast(draft, rules, turn, call, name);
    case "await_message":
      return awaitMessage(draft, rules, call);
    case "help":
      return help(draft, rules, call);
  }
}

function sendMail(draft: DecisionBuilder, rules: AgentRules, call: AgentToolCall): TurnError | undefined {
  const { state } = draft;
  const target = call.args.target;
  const requestId =
    call.name === "send_response" && typeof target === "string"
      ? requestToAnswer(state, normalizeAddress(target, draft.rules.swarm), rules.name)
      : undefined;
  const made = convertCallToMailMessage(call, {
    id: draft.id(),
    timestamp: draft.timestamp,
    taskId: state.taskId,
    agent: rules.name,
    swarm: draft.rules.swarm,
    knownSwarms: call.name === "send_interswarm_broadcast" ? swarmsInReach(rules) : [],
    requestId,
  });
  if (!made.ok) return { kind: "tool", text: made.message };
  if (isSystemSubject(made.value.message.subject)) {
    return {
      kind: "tool",
      text: "subjects between double colons are reserved for the system; choose another",
    };
  }
  const routes = routesFor(draft, rules, made.value);
  if ("kind" in routes) return routes;
  draft.send(made.value, routes, { call: { agent: rules.name, id: call.id, name: call.name } });
  return undefined;
}

/** MAIL: Routing Semantics. Agents write only to their comm targets, except with a broadcast to all. */
function routesFor(draft: DecisionBuilder, rules: AgentRules, message: MAILMessage): Routes | TurnError {
  const addresses =
    "recipient" in message.message
      ? [message.message.recipient.address]
      : message.message.recipients.map((recipient) => recipient.address);
  if (message.msg_type === "broadcast" && addresses.length === 1 && addresses[0] === MAIL_ALL_LOCAL_AGENTS) {
    const others = [...draft.rules.agents.keys()].filter((name) => name !== rules.name);
    if (others.length === 0) return { kind: "recipient", text: "there is no other agent in this swarm" };
    return roomFor(draft, { to: others, remote: [] });
  }
  for (const address of addresses) {
    // An agent of another swarm that wrote first can be answered, regardless of the comm targets.
    if (message.msg_type === "response" && isAsker(draft, rules, address)) continue;
    const error = checkRecipient(draft, rules, address);
    if (error !== undefined) return error;
  }
  return roomFor(draft, routesOf(addresses, draft.rules));
}

function isAsker(
  { state, rules: { swarm } }: DecisionBuilder,
  { name }: AgentRules,
  address: string,
): boolean {
  if (!isInterswarmAddress(address, swarm)) return false;
  const agent = state.agents.get(name);
  if (agent?.onBehalfOf?.sender.address === address) return true;
  // With several askers at once, or after a consultation, the asker is an earlier sender.
  return (
    state.outstanding.some(({ from, to }) => from === address && to === name) ||
    agent?.history.some((item) => item.kind === "message" && senderOf(item.message).address === address) ===
      true
  );
}

function checkRecipient(draft: DecisionBuilder, rules: AgentRules, address: string): TurnError | undefined {
  const { name, swarm } = parseAgentAddress(address);
  if (swarm !== undefined) {
    const inReach =
      rules.targets.has(address) || (name === MAIL_ALL_LOCAL_AGENTS && swarmsInReach(rules).includes(swarm));
    if (rules.interswarm && inReach) return undefined;
    return invalidRecipient(rules, address);
  }
  if (rules.targets.has(address) && draft.rules.agents.has(address)) return undefined;
  const { id, role } = draft.state.instance;
  if (role !== "swarm" && address === id && !draft.rules.agents.has(address)) {
    return {
      kind: "user_recipient",
      text:
        `'${address}' is the ${role} who gave the task, not an agent. The ${role} is answered by completing the ` +
        "task: call `task_complete`, or ask an agent that can.",
    };
  }
  return invalidRecipient(rules, address);
}

function invalidRecipient(rules: AgentRules, address: string): TurnError {
  const hint = address === MAIL_ALL_LOCAL_AGENTS ? " To reach all agents, use `send_broadcast`." : "";
  const targets = [...rules.targets];
  const reach = targets.length === 0 ? "no agent" : targets.join(", ");
  return {
    kind: "recipient",
    text: `agent '${rules.name}' may not write to '${address}'. It may write to: ${reach}.${hint}`,
  };
}

/** Mailboxes are bounded (law 8). */
function roomFor(draft: DecisionBuilder, routes: Routes): Routes | TurnError {
  for (const name of routes.to) {
    const waiting = draft.state.agents.get(name)?.mailbox.length ?? 0;
    if (waiting >= draft.rules.limits.mailbox) {
      return {
        kind: "tool",
        text: `the mailbox of agent '${name}' is full (${waiting} messages are waiting)`,
      };
    }
  }
  return routes;
}

/**
 * A response names the request from that agent on which the responder works, else the newest unanswered one; the
 * reference does not correlate them (REF-6). Another swarm may also wait for the answer to a broadcast.
 */
function requestToAnswer(state: TaskState, asker: string, answerer: string): string | undefined {
  const current = state.agents.get(answerer)?.onBehalfOf;
  const worksOn = current?.sender.address === asker ? current.requestId : undefined;
  const open = state.outstanding.filter((request) => request.from === asker && request.to === answerer);
  const request = open.find(({ requestId }) => requestId === worksOn) ?? open.at(-1);
  return request?.requestId ?? (isInterswarmAddress(asker, state.swarm) ? worksOn : undefined);
}

function swarmsInReach(rules: AgentRules): string[] {
  const swarms = new Set<string>();
  for (const target of rules.targets) {
    const { swarm } = parseAgentAddress(target);
    if (swarm !== undefined) swarms.add(swarm);
  }
  return [...swarms];
}

function completeTask(draft: DecisionBuilder, rules: AgentRules, call: AgentToolCall): TurnError | undefined {
  const { status } = draft.state;
  if (status === "paused") {
    return { kind: "tool", text: "the task is paused for a user's answer; complete it when it continues" };
  }
  if (status !== "running") {
    settle(draft, rules, call, `task already ${status}`);
    return undefined;
  }
  const made = convertCallToMailMessage(call, {
    id: draft.id(),
    timestamp: draft.timestamp,
    taskId: draft.state.taskId,
    agent: rules.name,
    swarm: draft.rules.swarm,
  });
  if (!made.ok) return { kind: "tool", text: made.message };
  complete(draft, made.value, { agent: rules.name, id: call.id, name: call.name });
  return undefined;
}

function settleBroadcast(
  draft: DecisionBuilder,
  rules: AgentRules,
  turn: OngoingTurn,
  call: AgentToolCall,
  name: "acknowledge_broadcast" | "ignore_broadcast",
): TurnError | undefined {
  const checked = checkToolArguments(name, call.args);
  if (!checked.ok) return { kind: "tool", text: checked.message };
  const broadcasts = turn.took.filter((mail) => mail.message.msg_type === "broadcast");
  if (broadcasts.length === 0) {
    return {
      kind: "tool",
      text: `improper use of ${name}: the message at hand is not a broadcast; answer it instead`,
    };
  }
  if (name === "acknowledge_broadcast") {
    settle(draft, rules, call, "broadcast acknowledged");
    return undefined;
  }
  draft.emit({
    t: "result",
    at: draft.at,
    agent: rules.name,
    call: call.id,
    name,
    ok: true,
    content: "broadcast ignored",
    hides: broadcasts.map((mail) => mail.message.id),
  });
  return undefined;
}

/** Ends the turn until new mail arrives; an error if nothing is outstanding for the agent (decision B5). */
function awaitMessage(draft: DecisionBuilder, rules: AgentRules, call: AgentToolCall): TurnError | undefined {
  const checked = checkToolArguments("await_message", call.args);
  if (!checked.ok) return { kind: "tool", text: checked.message };
  const { state } = draft;
  const hasMail = (state.agents.get(rules.name)?.mailbox.length ?? 0) > 0;
  const hasAsked = state.outstanding.some((request) => request.from === rules.name);
  if (!hasMail && !hasAsked) {
    return { kind: "tool", text: "no outstanding requests and message queue is empty" };
  }
  const { reason } = checked.value;
  settle(
    draft,
    rules,
    call,
    `waiting for a new message${reason === undefined ? "" : ` (reason: '${reason}')`}`,
  );
  return undefined;
}

function help(draft: DecisionBuilder, rules: AgentRules, call: AgentToolCall): TurnError | undefined {
  const checked = checkToolArguments("help", call.args);
  if (!checked.ok) return { kind: "tool", text: checked.message };
  const body = buildHelp({ agent: rules.name, swarm: draft.rules.swarm }, checked.value);
  draft.wake(rules.name, { subject: SYSTEM_SUBJECTS.help, body });
  settle(draft, rules, call, "help string generated; it is in your next message");
  return undefined;
}

function settle(draft: DecisionBuilder, rules: AgentRules, call: AgentToolCall, content: string): void {
  draft.emit({
    t: "result",
    at: draft.at,
    agent: rules.name,
    call: call.id,
    name: call.name,
    ok: true,
    content,
  });
}

/**
 * Text without a tool call goes to the agent that asked, never to all agents as in REF-4. It does not answer a user:
 * only completing the task does.
 */
export function sendTextToSender(
  draft: DecisionBuilder,
  rules: AgentRules,
  text: string,
): TurnError | undefined {
  const waiting = draft.state.agents.get(rules.name)?.onBehalfOf;
  if (waiting === undefined || waiting.sender.address_type !== "agent") {
    const advice = rules.canCompleteTasks
      ? "call `task_complete` with it"
      : "send it to an agent that can complete the task";
    return {
      kind: "tool",
      text: `your answer was text without a tool call, so no agent received it; ${advice}. Your text was: ${text}`,
    };
  }
  const target = normalizeAddress(waiting.sender.address, draft.rules.swarm);
  const id = draft.id();
  const message = buildResponse({
    id,
    timestamp: draft.timestamp,
    taskId: draft.state.taskId,
    sender: createAgentAddress(rules.name),
    recipient: createAgentAddress(target),
    subject: "",
    body: text,
    requestId: requestToAnswer(draft.state, target, rules.name) ?? id,
  });
  const routes = routesFor(draft, rules, message);
  if ("kind" in routes) return routes;
  draft.send(message, routes);
  return undefined;
}

/** Sends the text of a manual step in the way that the step requested. */
export function sendManualReply(
  draft: DecisionBuilder,
  rules: AgentRules,
  reply: ManualReply,
  text: string,
): TurnError | undefined {
  const common = {
    id: draft.id(),
    timestamp: draft.timestamp,
    taskId: draft.state.taskId,
    sender: createAgentAddress(rules.name),
    subject: "",
    body: text,
  };
  const targets = reply.targets.map((target) => normalizeAddress(target, draft.rules.swarm));
  const [first] = targets;
  if (reply.type === "broadcast" || first === undefined) {
    const toAll = targets.length === 0 || first === MAIL_ALL_LOCAL_AGENTS;
    const message = buildBroadcast(
      toAll ? common : { ...common, recipients: targets.map(createAgentAddress) },
    );
    const routes = routesFor(draft, rules, message);
    if ("kind" in routes) return routes;
    draft.send(message, routes);
    return undefined;
  }
  for (const target of targets) {
    const parts = { ...common, id: draft.id(), recipient: createAgentAddress(target) };
    const message =
      reply.type === "request"
        ? buildRequest(parts)
        : buildResponse({
            ...parts,
            requestId: requestToAnswer(draft.state, target, rules.name) ?? parts.id,
          });
    const routes = routesFor(draft, rules, message);
    if ("kind" in routes) return routes;
    draft.send(message, routes);
  }
  return undefined;
}

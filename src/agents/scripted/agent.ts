/**
 * Scripted agents: rules in JSON instead of a model. The answer is a pure function of the turn and its history, so a
 * script answers the same way every time, even after a restart.
 */

import { createHash } from "node:crypto";
import { MailroomError } from "../../base/index.js";
import type { AgentFunction, Turn } from "../../engine/index.js";
import { type Mail, openMailHandle } from "../mail.js";
import { actionResults, openWorkOf } from "../open-work.js";
import { readScript, type ScriptEnvironment } from "./check.js";
import { type Captures, matchMessage, matchWhen, receivedMessages } from "./match.js";
import type { ScriptedRule, ScriptedRuleInput, Step } from "./rules.js";
import { type Lookup, parseTemplate, renderTemplate } from "./template.js";

/**
 * Creates an agent that executes the first rule that matches the message.
 * @throws MailroomError `bad_agent_params` when the rules are invalid.
 * @example
 * scriptedAgent([{ when: { from_type: "user" }, do: [{ task_complete: "You wrote: {{body}}" }] }]);
 */
export function scriptedAgent(
  rules: readonly ScriptedRuleInput[],
  environment: ScriptEnvironment = {},
): AgentFunction {
  return scriptedAgentFromParams({ rules }, environment);
}

/** Creates a scripted agent from unchecked `agent_params`. */
export function scriptedAgentFromParams(params: unknown, environment: ScriptEnvironment = {}): AgentFunction {
  const rules = readScript(params, environment);
  return (turn) => {
    const { mail, calls } = openMailHandle(turn, callIds(turn));
    const recall = (name: string): string | undefined => remembered(mail, rules, name);
    for (const [index, rule] of rules.entries()) {
      const captures = matchWhen(rule.when, mail, recall);
      if (captures === undefined) continue;
      const render = renderer(turn.agent, index, lookupFor(mail, captures, recall));
      for (const step of rule.do) execute(step, mail, render);
      return { calls: [...calls] };
    }
    throw new MailroomError(
      "no_rule",
      `scripted agent '${turn.agent}' has no rule for a ${mail.type} from ${mail.fromType} '${mail.from}' ` +
        `with subject '${mail.subject}'. Add one, or a last rule without 'when' for everything else.`,
    );
  };
}

/**
 * Ids derived from the turn. An agent dequeues a message of a task only once, so they are unique in the task. A turn
 * that is repeated after a crash gets the same ids.
 */
function callIds(turn: Turn): () => string {
  const newest = turn.messages[turn.messages.length - 1] ?? turn.messages[0];
  let count = 0;
  return () => {
    const digest = createHash("sha256")
      .update(JSON.stringify([turn.agent, newest.id, count++]))
      .digest("hex");
    return `call_${digest.slice(0, 24)}`;
  };
}

interface Renderer {
  text(source: string): string;
  value(source: unknown): unknown;
}

function renderer(agent: string, rule: number, lookup: Lookup): Renderer {
  const value = (source: unknown): unknown => {
    if (typeof source === "string") {
      const rendered = renderTemplate(parseTemplate(source), lookup);
      if (rendered.ok) return rendered.value;
      throw new MailroomError("no_value", `rules[${rule}] of scripted agent '${agent}': ${rendered.message}`);
    }
    if (Array.isArray(source)) return source.map(value);
    if (typeof source !== "object" || source === null) return source;
    return Object.fromEntries(Object.entries(source).map(([key, part]) => [key, value(part)]));
  };
  return { value, text: (source) => String(value(source)) };
}

function execute(step: Step, mail: Mail, { text, value }: Renderer): void {
  const { reply, send_request, send_response, send_interrupt, send_broadcast, act, fail } = step;
  if (reply !== undefined) {
    if (typeof reply === "string") mail.reply(text(reply));
    else mail.reply(text(reply.body), { subject: text(reply.subject) });
  }
  if (send_request !== undefined) {
    mail.request(text(send_request.target), text(send_request.subject), text(send_request.body));
  }
  if (send_response !== undefined) {
    mail.respond(text(send_response.target), text(send_response.subject), text(send_response.body));
  }
  if (send_interrupt !== undefined) {
    mail.interrupt(text(send_interrupt.target), text(send_interrupt.subject), text(send_interrupt.body));
  }
  if (send_broadcast !== undefined) mail.broadcast(text(send_broadcast.subject), text(send_broadcast.body));
  if (step.task_complete !== undefined) mail.complete(text(step.task_complete));
  if (act !== undefined) {
    mail.act(act.name, Object.fromEntries(Object.entries(act.args).map(([key, part]) => [key, value(part)])));
  }
  const reason = (given: true | string): string | undefined => (given === true ? undefined : text(given));
  if (step.await_message !== undefined) mail.await(reason(step.await_message));
  if (step.acknowledge_broadcast !== undefined) mail.acknowledge(reason(step.acknowledge_broadcast));
  if (step.ignore_broadcast !== undefined) mail.ignore(reason(step.ignore_broadcast));
  if (fail !== undefined) throw new MailroomError("scripted_failure", text(fail));
}

function lookupFor(mail: Mail, captures: Captures, recall: (name: string) => string | undefined): Lookup {
  return ([root, name = ""]) => {
    switch (root) {
      case "body":
        return mail.body;
      case "subject":
        return mail.subject;
      case "from":
        return mail.from;
      case "type":
        return mail.type;
      case "agent":
        return mail.agent;
      case "swarm":
        return mail.swarm;
      case "task":
        return mail.task.id;
      case "question":
        return mail.question?.message.body;
      case "result":
        return actionResults(mail).at(-1)?.content;
      case "results":
        return resultInRound(mail, name);
      case "answers":
        return mail.answerFrom(name);
      case "match":
        return captures.get(name);
      case "remember":
        return captures.get(name) ?? recall(name);
      default:
        return undefined;
    }
  };
}

function resultInRound(mail: Mail, action: string): string | undefined {
  const item = openWorkOf(mail).items.findLast((past) => past.kind === "result" && past.name === action);
  return item?.kind === "result" ? item.content : undefined;
}

/** The latest capture of a named group among the messages that matched its rule. */
function remembered(mail: Mail, rules: readonly ScriptedRule[], name: string): string | undefined {
  for (const message of receivedMessages(mail).toReversed()) {
    for (const { when } of rules) {
      const captures = new Map<string, string>();
      if (!matchMessage(when, message, mail.swarm, captures)) continue;
      const value = captures.get(name);
      if (value !== undefined) return value;
    }
  }
  return undefined;
}

/**
 * Scripted agents: rules in JSON instead of a model. What one does is a pure function of its turn (all it remembers
 * is its history), so a script answers the same way every time, also after a restart.
 */
import { createHash } from "node:crypto";
import type { AgentFunction, Turn } from "../../engine/agent.js";
import { AgentError } from "../errors.js";
import { type Mail, openMail } from "../mail.js";
import { actionResults, currentRound } from "../round.js";
import { readScript, type ScriptSurroundings } from "./check.js";
import { type Captures, matchMessage, matchWhen, receivedMessages } from "./match.js";
import type { ScriptedRule, ScriptedRuleInput, Step } from "./rules.js";
import { type Lookup, parseTemplate, renderTemplate } from "./template.js";

/**
 * The first rule that fits the message is carried out.
 * @throws AgentParamsError (code `bad_agent_params`) when the rules are not valid.
 */
export function scriptedAgent(
  rules: readonly ScriptedRuleInput[],
  surroundings: ScriptSurroundings = {},
): AgentFunction {
  return scriptedAgentFromParams({ rules }, surroundings);
}

/** The same from `agent_params`, as yet unchecked. */
export function scriptedAgentFromParams(
  params: unknown,
  surroundings: ScriptSurroundings = {},
): AgentFunction {
  const rules = readScript(params, surroundings);
  return (turn) => {
    const { mail, calls } = openMail(turn, callIds(turn));
    const recall = (name: string): string | undefined => remembered(mail, rules, name);
    for (const [index, rule] of rules.entries()) {
      const captures = matchWhen(rule.when, mail, recall);
      if (captures === undefined) continue;
      const render = renderer(turn.agent, index, lookupFor(mail, captures, recall));
      for (const step of rule.do) carryOut(step, mail, render);
      return { calls: [...calls] };
    }
    throw new AgentError(
      "no_rule",
      `scripted agent '${turn.agent}' has no rule for a ${mail.type} from ${mail.fromType} '${mail.from}' ` +
        `with subject '${mail.subject}'. Add one, or a last rule without 'when' for everything else.`,
    );
  };
}

/**
 * Ids that follow from the turn. An agent takes a message of a task only once, so they are unique in the task; a
 * turn that is run again after a crash gets the same ones.
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
      throw new AgentError("no_value", `rules[${rule}] of scripted agent '${agent}': ${rendered.message}`);
    }
    if (Array.isArray(source)) return source.map(value);
    if (typeof source !== "object" || source === null) return source;
    return Object.fromEntries(Object.entries(source).map(([key, part]) => [key, value(part)]));
  };
  return { value, text: (source) => String(value(source)) };
}

function carryOut(step: Step, mail: Mail, { text, value }: Renderer): void {
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
  if (fail !== undefined) throw new AgentError("scripted_failure", text(fail));
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
  const item = currentRound(mail).items.findLast((past) => past.kind === "result" && past.name === action);
  return item?.kind === "result" ? item.content : undefined;
}

/** What a named group caught the last time that a message fitted its rule. */
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

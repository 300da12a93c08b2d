/**
 * Parses the rules of a scripted agent strictly. Everything that can be checked in advance is checked here, so that a
 * typing mistake does not surface only in a later turn.
 */

import { didYouMean, messageOf } from "../../base/index.js";
import type { PathSegment, UnplacedProblem } from "../../mail/index.js";
import { zodFindings } from "../../mail/index.js";
import { badAgentParams } from "../errors.js";
import { expressionOf, listOf } from "./match.js";
import {
  type ScriptedParams as Params,
  ScriptedParams,
  type ScriptedRule,
  type Step,
  type When,
} from "./rules.js";
import { type Placeholder, parseTemplate } from "./template.js";

/** The agent's comm targets and actions, where known. Names in a script are checked against them. */
export interface ScriptEnvironment {
  readonly commTargets?: readonly string[];
  readonly actions?: readonly string[];
}

/** @throws MailroomError `bad_agent_params` with all problems. */
export function readScript(params: unknown, environment: ScriptEnvironment = {}): readonly ScriptedRule[] {
  const parsed = ScriptedParams.safeParse(params);
  if (!parsed.success) {
    throw badAgentParams("a scripted agent", zodFindings(ScriptedParams, parsed.error.issues));
  }
  const findings = checkScript(parsed.data, environment);
  if (findings.length > 0) throw badAgentParams("a scripted agent", findings);
  return parsed.data.rules;
}

function checkScript({ rules }: Params, environment: ScriptEnvironment): UnplacedProblem[] {
  const findings: UnplacedProblem[] = [];
  const groups = rules.map((rule, index) => groupsOf(rule.when, ["rules", index, "when"], findings));
  const remembered = new Set(groups.flatMap((names) => [...names]));
  for (const [index, rule] of rules.entries()) {
    const at = ["rules", index];
    const known = { groups: groups[index] ?? new Set<string>(), remembered, environment };
    if (typeof rule.when.result === "string") {
      checkName("action", rule.when.result, environment.actions, [...at, "when", "result"], findings);
    }
    for (const name of rule.when.remembers === undefined ? [] : listOf(rule.when.remembers)) {
      if (remembered.has(name)) continue;
      findings.push({
        at: [...at, "when", "remembers"],
        message: `no expression of any rule has a group named '${name}'`,
        ...hintOf(didYouMean(name, remembered)),
      });
    }
    for (const [position, step] of rule.do.entries())
      checkStep(step, [...at, "do", position], known, findings);
    const unreachable = rules.slice(0, index).findIndex(({ when }) => Object.keys(when).length === 0);
    if (unreachable >= 0) {
      findings.push({
        at,
        message: `this rule is unreachable: rules[${unreachable}] has no conditions and matches everything`,
        hint: "put the rule without conditions last",
      });
    }
  }
  return findings;
}

/** Returns the names and numbers of all groups in a rule's expressions. Reports invalid expressions. */
function groupsOf(when: When, at: readonly PathSegment[], findings: UnplacedProblem[]): Set<string> {
  const groups = new Set<string>();
  for (const field of ["subject", "body", "question"] as const) {
    const tests = when[field];
    if (tests === undefined) continue;
    for (const test of listOf(tests)) {
      if (typeof test === "string" || test.matches === undefined) continue;
      groups.add("0");
      try {
        // An empty alternative always matches, so the match lists the groups.
        const found = expressionOf(`${test.matches}|`, test.flags).exec("");
        for (const name of Object.keys(found?.groups ?? {})) groups.add(name);
        for (const number of (found ?? []).keys()) groups.add(String(number));
      } catch (error) {
        findings.push({
          at: [...at, field],
          message: messageOf(error),
          hint: "in JSON a backslash is written twice: \\\\d",
        });
      }
    }
  }
  return groups;
}

interface Known {
  readonly groups: ReadonlySet<string>;
  readonly remembered: ReadonlySet<string>;
  readonly environment: ScriptEnvironment;
}

function checkStep(step: Step, at: readonly PathSegment[], known: Known, findings: UnplacedProblem[]): void {
  for (const verb of ["send_request", "send_response", "send_interrupt"] as const) {
    const target = step[verb]?.target;
    if (target !== undefined && !target.includes("{{")) {
      checkName("agent", target, known.environment.commTargets, [...at, verb, "target"], findings);
    }
  }
  if (step.act !== undefined) {
    checkName("action", step.act.name, known.environment.actions, [...at, "act", "name"], findings);
  }
  checkTemplates(step, at, known, findings);
}

function checkName(
  kind: "agent" | "action",
  name: string,
  names: readonly string[] | undefined,
  at: readonly PathSegment[],
  findings: UnplacedProblem[],
): void {
  if (names === undefined || names.includes(name)) return;
  const list = kind === "agent" ? "comm_targets" : "actions";
  const hint = didYouMean(name, names) ?? `add it to the agent's ${list}`;
  findings.push({ at, message: `'${name}' is not among the agent's ${list}`, hint });
}

/** Every string in a step may be a template. */
function checkTemplates(
  value: unknown,
  at: readonly PathSegment[],
  known: Known,
  findings: UnplacedProblem[],
): void {
  if (typeof value === "string") {
    try {
      const template = parseTemplate(value);
      for (const part of template) {
        if (typeof part === "string") continue;
        checkPlaceholder(part, at, known, findings);
        if (part.type !== undefined && (template.length > 1 || !at.includes("args"))) {
          findings.push({
            at,
            message: `a type (':${part.type}') requires the placeholder to be a complete argument of an action`,
          });
        }
      }
    } catch (error) {
      findings.push({ at, message: messageOf(error) });
    }
    return;
  }
  if (typeof value !== "object" || value === null) return;
  const entries: Iterable<[PathSegment, unknown]> = Array.isArray(value)
    ? value.entries()
    : Object.entries(value);
  for (const [key, part] of entries) checkTemplates(part, [...at, key], known, findings);
}

function checkPlaceholder(
  { path }: Placeholder,
  at: readonly PathSegment[],
  known: Known,
  findings: UnplacedProblem[],
): void {
  const [root, name] = path;
  if (name === undefined) return;
  const { commTargets, actions } = known.environment;
  const names: Iterable<string> | undefined =
    root === "match"
      ? known.groups
      : root === "remember"
        ? known.remembered
        : root === "answers"
          ? commTargets
          : actions;
  if (names === undefined) return;
  const list = [...names];
  if (list.includes(name)) return;
  const what = {
    match: "no expression of this rule has a group of that name",
    remember: "no expression of any rule has a group of that name",
    answers: "it is not among the agent's comm_targets",
    results: "it is not among the agent's actions",
  }[String(root)];
  const hint = didYouMean(
    name,
    list.filter((candidate) => !/^\d+$/.test(candidate)),
  );
  findings.push({
    at,
    message: `'{{${path.join(".")}}}' can never have a value: ${what ?? "unknown name"}`,
    ...hintOf(hint),
  });
}

function hintOf(hint: string | undefined): { readonly hint?: string } {
  return hint === undefined ? {} : { hint };
}

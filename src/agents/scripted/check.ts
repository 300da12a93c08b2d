/**
 * Reads the rules of a scripted agent strictly. Everything that can be known beforehand is checked here, so that a
 * script that loads does not fail over a typing mistake in its third turn.
 */
import type { Finding, PathSegment } from "../../mail/swarm-file/problems.js";
import { didYouMean } from "../../mail/swarm-file/suggest.js";
import { zodFindings } from "../../mail/swarm-file/zod-findings.js";
import { AgentParamsError } from "../errors.js";
import { expressionOf, listOf } from "./match.js";
import {
  type ScriptedParams as Params,
  ScriptedParams,
  type ScriptedRule,
  type Step,
  type When,
} from "./rules.js";
import { type Placeholder, parseTemplate } from "./template.js";

/** What the agent can do, where it is known: names that a script mentions are held against it. */
export interface ScriptSurroundings {
  readonly commTargets?: readonly string[];
  readonly actions?: readonly string[];
}

/** @throws AgentParamsError (code `bad_agent_params`) with everything that is wrong. */
export function readScript(params: unknown, surroundings: ScriptSurroundings = {}): readonly ScriptedRule[] {
  const parsed = ScriptedParams.safeParse(params);
  if (!parsed.success) {
    throw new AgentParamsError("a scripted agent", zodFindings(ScriptedParams, parsed.error.issues));
  }
  const findings = checkScript(parsed.data, surroundings);
  if (findings.length > 0) throw new AgentParamsError("a scripted agent", findings);
  return parsed.data.rules;
}

function checkScript({ rules }: Params, surroundings: ScriptSurroundings): Finding[] {
  const findings: Finding[] = [];
  const groups = rules.map((rule, index) => groupsOf(rule.when, ["rules", index, "when"], findings));
  const remembered = new Set(groups.flatMap((names) => [...names]));
  for (const [index, rule] of rules.entries()) {
    const at = ["rules", index];
    const known = { groups: groups[index] ?? new Set<string>(), remembered, surroundings };
    if (typeof rule.when.result === "string") {
      checkName("action", rule.when.result, surroundings.actions, [...at, "when", "result"], findings);
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
        message: `this rule is never reached: rules[${unreachable}] has no conditions and takes everything`,
        hint: "put the rule without conditions last",
      });
    }
  }
  return findings;
}

/** Names and numbers of all groups of a rule's expressions; an expression that is none is a finding. */
function groupsOf(when: When, at: readonly PathSegment[], findings: Finding[]): Set<string> {
  const groups = new Set<string>();
  for (const field of ["subject", "body", "question"] as const) {
    const tests = when[field];
    if (tests === undefined) continue;
    for (const test of listOf(tests)) {
      if (typeof test === "string" || test.matches === undefined) continue;
      groups.add("0");
      try {
        // An alternative that is empty always matches, and so tells which groups there are.
        const found = expressionOf(`${test.matches}|`, test.flags).exec("");
        for (const name of Object.keys(found?.groups ?? {})) groups.add(name);
        for (const number of (found ?? []).keys()) groups.add(String(number));
      } catch (error) {
        findings.push({
          at: [...at, field],
          message: error instanceof Error ? error.message : String(error),
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
  readonly surroundings: ScriptSurroundings;
}

function checkStep(step: Step, at: readonly PathSegment[], known: Known, findings: Finding[]): void {
  for (const verb of ["send_request", "send_response", "send_interrupt"] as const) {
    const target = step[verb]?.target;
    if (target !== undefined && !target.includes("{{")) {
      checkName("agent", target, known.surroundings.commTargets, [...at, verb, "target"], findings);
    }
  }
  if (step.act !== undefined) {
    checkName("action", step.act.name, known.surroundings.actions, [...at, "act", "name"], findings);
  }
  checkTemplates(step, at, known, findings);
}

function checkName(
  kind: "agent" | "action",
  name: string,
  names: readonly string[] | undefined,
  at: readonly PathSegment[],
  findings: Finding[],
): void {
  if (names === undefined || names.includes(name)) return;
  const list = kind === "agent" ? "comm_targets" : "actions";
  const hint = didYouMean(name, names) ?? `add it to the agent's ${list}`;
  findings.push({ at, message: `'${name}' is not among the agent's ${list}`, hint });
}

/** Every text anywhere in a step may be a template. */
function checkTemplates(value: unknown, at: readonly PathSegment[], known: Known, findings: Finding[]): void {
  if (typeof value === "string") {
    try {
      const template = parseTemplate(value);
      for (const part of template) {
        if (typeof part === "string") continue;
        checkPlaceholder(part, at, known, findings);
        if (part.type !== undefined && (template.length > 1 || !at.includes("args"))) {
          findings.push({
            at,
            message: `a type (':${part.type}') needs the placeholder to be the whole of an action's argument`,
          });
        }
      }
    } catch (error) {
      findings.push({ at, message: error instanceof Error ? error.message : String(error) });
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
  findings: Finding[],
): void {
  const [root, name] = path;
  if (name === undefined) return;
  const { commTargets, actions } = known.surroundings;
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
    message: `'{{${path.join(".")}}}' can never have a value: ${what ?? "it is unknown"}`,
    ...hintOf(hint),
  });
}

function hintOf(hint: string | undefined): { readonly hint?: string } {
  return hint === undefined ? {} : { hint };
}

/**
 * Checks a swarm as a whole. One implementation for swarm files and for swarms defined in code, which are both
 * converted to this form.
 */

import { didYouMean } from "../../base/index.js";
import { checkAgentName, checkSwarmName, isInterswarmAddress, parseAgentAddress } from "../address.js";
import { MAIL_ALL_LOCAL_AGENTS } from "../names.js";
import { isMailToolName, MAIL_TOOL_NAMES } from "../tool-table.js";
import type { Findings, PathSegment, UnplacedProblem } from "./problems.js";

export interface AgentOutline {
  readonly name: string;
  readonly comm_targets: readonly string[];
  readonly enable_entrypoint: boolean;
  readonly enable_interswarm: boolean;
  readonly can_complete_tasks: boolean;
  readonly actions: readonly string[];
  readonly exclude_tools: readonly string[];
}

interface ActionOutline {
  readonly name: string;
  /** Position of its definition or import. */
  readonly at: readonly PathSegment[];
}

/** A swarm without its functions. */
export interface SwarmOutline {
  readonly name: string;
  readonly entrypoint: string;
  readonly enable_interswarm: boolean;
  readonly agents: readonly AgentOutline[];
  readonly breakpoint_tools: readonly string[];
  readonly exclude_tools: readonly string[];
  readonly actions: readonly ActionOutline[];
  /** False while imports are unresolved: an unknown action may still be imported. */
  readonly allActionsKnown: boolean;
}

/** Paths in the findings are relative to the swarm. */
export function checkSwarm(swarm: SwarmOutline): Findings {
  const errors: UnplacedProblem[] = [];
  const warnings: UnplacedProblem[] = [];
  checkNames(swarm, errors);
  checkEntrypoint(swarm, errors);
  checkSupervisors(swarm, errors, warnings);
  checkTargets(swarm, errors, warnings);
  checkActions(swarm, errors);
  checkTools(swarm, errors);
  return { errors, warnings };
}

function checkNames(swarm: SwarmOutline, errors: UnplacedProblem[]): void {
  const wrongName = checkSwarmName(swarm.name);
  if (wrongName !== undefined) errors.push({ at: ["name"], message: wrongName });
  if (swarm.agents.length === 0) {
    errors.push({ at: ["agents"], message: "a swarm requires at least one agent", hint: "define an agent" });
  }
  const seen = new Map<string, number>();
  for (const [index, { name }] of swarm.agents.entries()) {
    const at = ["agents", index, "name"];
    const wrong = checkAgentName(name);
    if (wrong !== undefined) errors.push({ at, message: wrong });
    const first = seen.get(name);
    if (first === undefined) seen.set(name, index);
    else {
      errors.push({
        at,
        message: `agent '${name}' is defined twice (first as agents[${first}])`,
        hint: "rename one of them",
      });
    }
  }
}

function checkEntrypoint(swarm: SwarmOutline, errors: UnplacedProblem[]): void {
  const open = swarm.agents.filter((agent) => agent.enable_entrypoint);
  const index = swarm.agents.findIndex(({ name }) => name === swarm.entrypoint);
  const agent = swarm.agents[index];
  if (agent === undefined) {
    const candidates = (open.length > 0 ? open : swarm.agents).map(({ name }) => name);
    errors.push({
      at: ["entrypoint"],
      message: `entrypoint '${swarm.entrypoint}' is not an agent of this swarm`,
      ...hint(didYouMean(swarm.entrypoint, candidates)),
    });
  } else if (!agent.enable_entrypoint) {
    errors.push({
      at: ["agents", index],
      message: `agent '${agent.name}' is the swarm's entrypoint but does not have enable_entrypoint`,
      hint: `set enable_entrypoint to true on '${agent.name}', or choose another entrypoint`,
    });
  }
}

/** MAIL: Agents. A swarm needs an agent that can complete its tasks. */
function checkSupervisors(swarm: SwarmOutline, errors: UnplacedProblem[], warnings: UnplacedProblem[]): void {
  if (swarm.agents.length === 0) return;
  const supervisors = swarm.agents.filter((agent) => agent.can_complete_tasks);
  if (supervisors.length === 0) {
    errors.push({
      at: ["agents"],
      message: "no agent can complete tasks, so no task can end",
      hint: "set can_complete_tasks to true on at least one agent",
    });
    return;
  }
  const hidden = (agent: AgentOutline): boolean =>
    [...swarm.exclude_tools, ...agent.exclude_tools].includes("task_complete");
  if (supervisors.every(hidden)) {
    warnings.push({
      at: ["agents"],
      message: "'task_complete' is excluded for every agent that could complete tasks",
      hint: "remove it from exclude_tools",
    });
  }
}

function checkTargets(swarm: SwarmOutline, errors: UnplacedProblem[], warnings: UnplacedProblem[]): void {
  for (const [index, agent] of swarm.agents.entries()) {
    const at = ["agents", index, "comm_targets"];
    if (agent.comm_targets.length === 0 && !(agent.can_complete_tasks && agent.enable_entrypoint)) {
      errors.push({
        at,
        message: `agent '${agent.name}' has no comm_targets`,
        hint:
          "add at least one agent; only an agent that is an entrypoint (enable_entrypoint) and completes tasks " +
          "(can_complete_tasks) may work alone",
      });
    }
    for (const [position, target] of agent.comm_targets.entries()) {
      checkTarget(swarm, agent, target, [...at, position], errors, warnings);
    }
  }
}

function checkTarget(
  swarm: SwarmOutline,
  agent: AgentOutline,
  target: string,
  at: readonly PathSegment[],
  errors: UnplacedProblem[],
  warnings: UnplacedProblem[],
): void {
  const address = parseAgentAddress(target);
  if (target === MAIL_ALL_LOCAL_AGENTS) {
    errors.push({
      at,
      message: "'all' is not an agent: it stands for every agent of the swarm",
      hint: "list the agents by name; send_broadcast reaches all agents without being listed",
    });
    return;
  }
  if (isInterswarmAddress(target, swarm.name)) {
    const wrong = checkAgentName(address.name) ?? checkSwarmName(address.swarm ?? "");
    if (wrong !== undefined) {
      errors.push({ at, message: `'${target}' is not an address: ${wrong}`, hint: "write agent@swarm" });
    } else if (!swarm.enable_interswarm) {
      errors.push({
        at,
        message: `'${target}' is an agent of another swarm, but this swarm does not have enable_interswarm`,
        hint: `set enable_interswarm to true on swarm '${swarm.name}' (and on agent '${agent.name}')`,
      });
    } else if (!agent.enable_interswarm) {
      warnings.push({
        at,
        message: `agent '${agent.name}' cannot reach '${target}': it does not have enable_interswarm`,
        hint: `set enable_interswarm to true on '${agent.name}'`,
      });
    }
    return;
  }
  if (address.name === agent.name) {
    errors.push({
      at,
      message: `agent '${agent.name}' lists itself`,
      hint: "remove it from its comm_targets",
    });
    return;
  }
  const names = swarm.agents.map(({ name }) => name);
  if (!names.includes(address.name)) {
    errors.push({
      at,
      message: `unknown agent '${target}'`,
      ...hint(
        didYouMean(
          address.name,
          names.filter((name) => name !== agent.name),
        ),
      ),
    });
  }
}

function checkActions(swarm: SwarmOutline, errors: UnplacedProblem[]): void {
  const seen = new Map<string, ActionOutline>();
  for (const action of swarm.actions) {
    if (isMailToolName(action.name)) {
      errors.push({
        at: action.at,
        message: `an action cannot be called '${action.name}': that is a MAIL tool`,
        hint: "give the action another name",
      });
    }
    if (seen.has(action.name)) {
      errors.push({
        at: action.at,
        message: `action '${action.name}' is defined twice`,
        hint: "rename one of them, or define or import it only once",
      });
    } else seen.set(action.name, action);
  }
  if (!swarm.allActionsKnown) return;
  for (const [index, agent] of swarm.agents.entries()) {
    for (const [position, name] of agent.actions.entries()) {
      if (seen.has(name)) continue;
      const at = ["agents", index, "actions", position];
      if (isMailToolName(name)) {
        errors.push({
          at,
          message: `'${name}' is a MAIL tool, not an action`,
          hint: "remove it: agents get MAIL tools by their permissions",
        });
      } else {
        errors.push({
          at,
          message: `unknown action '${name}'`,
          ...hint(didYouMean(name, seen.keys()) ?? "define or import an action of that name"),
        });
      }
    }
  }
}

function checkTools(swarm: SwarmOutline, errors: UnplacedProblem[]): void {
  const actions = swarm.actions.map(({ name }) => name);
  for (const [position, name] of swarm.breakpoint_tools.entries()) {
    if (isMailToolName(name) || actions.includes(name) || !swarm.allActionsKnown) continue;
    errors.push({
      at: ["breakpoint_tools", position],
      message: `unknown breakpoint tool '${name}': it is neither an action of this swarm nor a MAIL tool`,
      ...hint(didYouMean(name, [...actions, ...MAIL_TOOL_NAMES])),
    });
  }
  const excluded = [
    { at: ["exclude_tools"], names: swarm.exclude_tools },
    ...swarm.agents.map((agent, index) => ({
      at: ["agents", index, "exclude_tools"],
      names: agent.exclude_tools,
    })),
  ];
  for (const { at, names } of excluded) {
    for (const [position, name] of names.entries()) {
      if (isMailToolName(name)) continue;
      errors.push({
        at: [...at, position],
        message: actions.includes(name)
          ? `'${name}' is an action: only MAIL tools can be excluded`
          : `unknown MAIL tool '${name}'`,
        ...hint(
          actions.includes(name)
            ? "remove it from the actions of the agents instead"
            : didYouMean(name, MAIL_TOOL_NAMES),
        ),
      });
    }
  }
}

function hint(text: string | undefined): { readonly hint?: string } {
  return text === undefined ? {} : { hint: text };
}

/** A definition as data, in the words of swarm files. Code has no data form and is left out. */
import { isRecord } from "../../base/index.js";
import type { RuntimeLimits, SwarmDefinition } from "../../engine/index.js";

export function swarmData(swarm: SwarmDefinition): Record<string, unknown> {
  return {
    name: swarm.name,
    version: swarm.version,
    description: swarm.description,
    entrypoint: swarm.entrypoint,
    keywords: swarm.keywords,
    public: swarm.public,
    enable_interswarm: swarm.enableInterswarm,
    breakpoint_tools: swarm.breakpointTools,
    exclude_tools: swarm.excludeTools,
    agents: swarm.agents.map((agent) => ({
      name: agent.name,
      ...(agent.description !== undefined && { description: agent.description }),
      comm_targets: agent.commTargets,
      enable_entrypoint: agent.enableEntrypoint,
      enable_interswarm: agent.enableInterswarm,
      can_complete_tasks: agent.canCompleteTasks,
      tool_format: agent.toolFormat,
      actions: agent.actions,
      exclude_tools: agent.excludeTools,
      remote: agent.implementation.kind === "remote",
      ...mindOf(agent),
      ...(agent.implementation.kind === "local" &&
        agent.implementation.speculate !== undefined && { speculate: agent.implementation.speculate }),
    })),
    actions: swarm.actions.map(({ name, description, parameters }) => ({ name, description, parameters })),
    hash: swarm.hash,
  };
}

/** What answers the agent's mail; of a model agent also the model. */
function mindOf(agent: SwarmDefinition["agents"][number]): { readonly mind: string; readonly llm?: string } {
  if (agent.implementation.kind === "remote") return { mind: "remote" };
  const origin = "origin" in agent ? agent.origin : undefined;
  if (!isRecord(origin) || !isRecord(origin.params)) return { mind: "function" };
  const { llm, rules } = origin.params;
  if (rules !== undefined) return { mind: "scripted" };
  const model: unknown = Array.isArray(llm) ? llm[0] : llm;
  return typeof model === "string" ? { mind: "model", llm: model } : { mind: "function" };
}

export function limitsData(limits: RuntimeLimits) {
  return {
    max_steps: limits.maxSteps,
    repetition: limits.repetition,
    own_turns: limits.ownTurns,
    errors_in_a_row: limits.errorsInARow,
    recoveries: limits.recoveries,
    action_attempts: limits.actionAttempts,
    turns: limits.turns,
    turns_per_task: limits.turnsPerTask,
    actions_per_task: limits.actionsPerTask,
    running_tasks: limits.runningTasks,
    running_tasks_per_caller: limits.runningTasksPerInstance,
    mailbox: limits.mailbox,
    result_length: limits.resultLength,
    task_bytes: limits.taskBytes,
    task_timeout_ms: limits.taskTimeout,
    turn_timeout_ms: limits.turnTimeout,
    action_timeout_ms: limits.actionTimeout,
    approval_timeout_ms: limits.approvalTimeout,
    reply_timeout_ms: limits.replyTimeout,
  };
}

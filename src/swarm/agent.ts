/** `defineAgent`: an agent in code. */
import { type FunctionAgentOptions, functionAgent, type MailFunction } from "../agents/index.js";
import type { Action, AgentDefinition, BudgetLimits, LocalImplementation } from "../engine/index.js";

interface AgentTraits {
  readonly name: string;
  /** What it does, for agents and people that choose an agent. */
  readonly description?: string;
  /** Its comm targets: `name`, or `name@swarm` in another swarm. */
  readonly commTargets?: readonly string[];
  /** Whether users may write to it. Default: false. */
  readonly enableEntrypoint?: boolean;
  /** Whether it may write to other swarms. Default: false. */
  readonly enableInterswarm?: boolean;
  /** Whether it may complete tasks. Default: false. */
  readonly canCompleteTasks?: boolean;
  /** The shape of tools and history for model agents. Default: `responses`. */
  readonly toolFormat?: "completions" | "responses";
  /** Actions that it may call, or names of the swarm's actions. Given actions are added to the swarm. */
  readonly actions?: readonly (Action | string)[];
  /** MAIL tools that it does not get. */
  readonly excludeTools?: readonly string[];
  /** Limits on what its model calls use in one task. At a limit the task pauses. */
  readonly budget?: BudgetLimits;
}

/** An agent that runs in this process. */
export interface LocalAgentOptions extends AgentTraits, FunctionAgentOptions {
  /** Answers mail. An `AgentFunction` of the engine also fits. */
  readonly run: MailFunction;
  /**
   * `false`: turns start only on durable mail. Otherwise a turn may start earlier, for mail that a crash can still
   * undo, so put side effects into an action. Default: `true`; `false` for model agents.
   */
  readonly speculate?: boolean;
}

/** An agent in another process: its mail waits until that process fetches it. */
export interface RemoteAgentOptions extends AgentTraits {
  readonly remote: true;
}

/** What `defineAgent` makes an agent from: one in this process (`run`), or one in another (`remote`). */
export type AgentOptions = LocalAgentOptions | RemoteAgentOptions;

/** An agent's definition, and the actions that it adds to its swarm. */
export interface DefinedAgent extends AgentDefinition {
  readonly ownActions: readonly Action[];
  /** Factory and parameters of an agent from a swarm file. Part of the swarm's hash. */
  readonly origin?: unknown;
}

/**
 * Defines an agent. `defineSwarm` checks names and permissions, because they depend on the other agents.
 * @example
 * defineAgent({
 *   name: "greeter",
 *   enableEntrypoint: true,
 *   canCompleteTasks: true,
 *   run: (mail) => mail.complete(`Hello, ${mail.body}!`),
 * });
 */
export function defineAgent(options: AgentOptions): DefinedAgent {
  const actions = options.actions ?? [];
  return {
    name: options.name,
    ...(options.description === undefined ? {} : { description: options.description }),
    commTargets: [...(options.commTargets ?? [])],
    enableEntrypoint: options.enableEntrypoint ?? false,
    enableInterswarm: options.enableInterswarm ?? false,
    canCompleteTasks: options.canCompleteTasks ?? false,
    toolFormat: options.toolFormat ?? "responses",
    actions: actions.map((action) => (typeof action === "string" ? action : action.name)),
    excludeTools: [...(options.excludeTools ?? [])],
    ...(options.budget === undefined ? {} : { budget: { ...options.budget } }),
    implementation: "remote" in options ? { kind: "remote" } : localMind(options),
    ownActions: actions.filter((action): action is Action => typeof action !== "string"),
  };
}

function localMind(options: LocalAgentOptions): LocalImplementation {
  const speculate = options.speculate ?? options.run.speculate;
  const run = functionAgent(options.run, options);
  return { kind: "local", run, ...(speculate !== undefined && { speculate }) };
}

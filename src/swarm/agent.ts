/** `defineAgent`: an agent in code. */
import { type FunctionAgentOptions, functionAgent, type MailFunction } from "../agents/function.js";
import type { Action } from "../engine/agent.js";
import type { AgentDefinition, LocalMind } from "../engine/definition.js";

interface AgentTraits {
  readonly name: string;
  /** What it is good for, for agents and people who choose. */
  readonly description?: string;
  /** Agents it may write to: `name`, or `name@swarm` for one of another swarm. */
  readonly commTargets?: readonly string[];
  /** Users may write to it. Default: false. */
  readonly enableEntrypoint?: boolean;
  /** It may write to other swarms. Default: false. */
  readonly enableInterswarm?: boolean;
  /** It may end tasks. Default: false. */
  readonly canCompleteTasks?: boolean;
  /** The shape of tools and history for model agents. Default: `responses`. */
  readonly toolFormat?: "completions" | "responses";
  /** What it may call: actions, which the swarm then has too, or names of actions of the swarm. */
  readonly actions?: readonly (Action | string)[];
  /** MAIL tools that it is not to have. */
  readonly excludeTools?: readonly string[];
}

/** An agent that runs in this process. */
export interface LocalAgentOptions extends AgentTraits, FunctionAgentOptions {
  /** What it does with its mail. An `AgentFunction` of the engine fits here as well. */
  readonly run: MailFunction;
  /**
   * `false`: its turns start on durable mail only. Else one may start a moment earlier and run for mail that a crash
   * then takes back, so what must not happen for nothing belongs in an action. Default: `true`, and `false` for agents
   * that think with a model.
   */
  readonly speculate?: boolean;
}

/** An agent that is served from outside: its mail waits until somebody fetches it. */
export interface RemoteAgentOptions extends AgentTraits {
  readonly remote: true;
}

export type AgentOptions = LocalAgentOptions | RemoteAgentOptions;

/** An agent's definition together with the actions that it brings into its swarm. */
export interface DefinedAgent extends AgentDefinition {
  readonly ownActions: readonly Action[];
  /** What made it, where that is data (factory and parameters of a swarm file): part of the swarm's hash. */
  readonly origin?: unknown;
}

/** Names and rights are checked by `defineSwarm`, where the agent meets the others. */
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
    mind: "remote" in options ? { kind: "remote" } : localMind(options),
    ownActions: actions.filter((action): action is Action => typeof action !== "string"),
  };
}

function localMind(options: LocalAgentOptions): LocalMind {
  const speculate = options.speculate ?? options.run.speculate;
  const run = functionAgent(options.run, options);
  return { kind: "local", run, ...(speculate !== undefined && { speculate }) };
}

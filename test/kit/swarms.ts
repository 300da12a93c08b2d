/** Short definitions of swarms for tests. */
import { defaultsOf } from "../../src/base/index.js";
import type { Action, ActionContext, AgentFunction } from "../../src/engine/agent.js";
import type { AgentDefinition, SwarmDefinition } from "../../src/engine/definition.js";
import { runtimeSettings } from "../../src/engine/settings.js";
import { type EngineLimits, rulesOf, type SwarmRules } from "../../src/engine/task/rules.js";

export const SWARM = "desk";

export interface AgentOptions {
  readonly targets?: readonly string[];
  /** May complete tasks. */
  readonly supervisor?: boolean;
  readonly entrypoint?: boolean;
  readonly actions?: readonly string[];
  readonly interswarm?: boolean;
  readonly exclude?: readonly string[];
  readonly remote?: boolean;
  readonly run?: AgentFunction;
}

const silent: AgentFunction = () => {
  throw new Error("this agent has no answer");
};

export function agent(name: string, options: AgentOptions = {}): AgentDefinition {
  return {
    name,
    commTargets: options.targets ?? [],
    enableEntrypoint: options.entrypoint ?? false,
    enableInterswarm: options.interswarm ?? false,
    canCompleteTasks: options.supervisor ?? false,
    toolFormat: "completions",
    actions: options.actions ?? [],
    excludeTools: options.exclude ?? [],
    implementation:
      options.remote === true ? { kind: "remote" } : { kind: "local", run: options.run ?? silent },
  };
}

export type ActionOptions = Partial<
  Pick<Action, "idempotent" | "timeLimit" | "parallel" | "approval" | "approvalTimeout" | "check">
>;

export function action(
  name: string,
  run: (args: unknown, context: ActionContext) => unknown = () => `${name} done`,
  options: ActionOptions = {},
): Action {
  return {
    name,
    description: `does ${name}`,
    parameters: { type: "object" },
    check: (args) => ({ ok: true, value: args }),
    run,
    idempotent: false,
    ...options,
  };
}

export interface SwarmOptions {
  readonly actions?: readonly Action[];
  readonly breakpoints?: readonly string[];
  readonly exclude?: readonly string[];
  readonly hash?: string;
}

/** The first agent is the entrypoint of the swarm. */
export function swarm(
  agents: readonly [AgentDefinition, ...AgentDefinition[]],
  options: SwarmOptions = {},
): SwarmDefinition {
  return {
    name: SWARM,
    version: "1",
    description: "a swarm for tests",
    keywords: [],
    public: false,
    entrypoint: agents[0].name,
    enableInterswarm: true,
    agents,
    actions: options.actions ?? [],
    breakpointTools: options.breakpoints ?? [],
    excludeTools: options.exclude ?? [],
    hash: options.hash ?? "one",
  };
}

/** A supervisor `boss` and two workers `ann` and `bob`, who may all write to each other. */
export function office(options: SwarmOptions & { readonly workerActions?: readonly string[] } = {}) {
  const workerActions = options.workerActions ?? options.actions?.map(({ name }) => name) ?? [];
  return swarm(
    [
      agent("boss", {
        targets: ["ann", "bob"],
        supervisor: true,
        entrypoint: true,
        actions: options.actions?.map(({ name }) => name) ?? [],
      }),
      agent("ann", { targets: ["boss", "bob"], actions: workerActions }),
      agent("bob", { targets: ["boss", "ann"], actions: workerActions }),
    ],
    options,
  );
}

export function rulesFor(definition: SwarmDefinition, limits: Partial<EngineLimits> = {}): SwarmRules {
  return rulesOf(definition, { ...defaultsOf(runtimeSettings), ...limits });
}

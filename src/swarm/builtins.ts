/** The targets of `mail:<name>` references. Callers can extend them with their own registry. */

import type { OutboundOptions } from "../actions/index.js";
import {
  clockAction,
  type FileActionOptions,
  fileActions,
  httpActions,
  interswarmActions,
  mcpActions,
  memoryActions,
} from "../actions/index.js";
import type { AgentFactory } from "../agents/index.js";
import {
  isModelAvailable,
  type ModelEnvironment,
  modelFactory,
  scriptedAgentFromParams,
} from "../agents/index.js";
import type { Action } from "../engine/index.js";

export interface Builtins {
  readonly agents: Readonly<Record<string, AgentFactory>>;
  readonly actions: Readonly<Record<string, Action>>;
  /** Prompts of the reference implementation's examples, by the name of the example. */
  readonly prompts?: Readonly<Record<string, string>>;
  /** `provider/model` of the bundled example agents that name none. Without it they follow scripts. */
  readonly defaultModel?: string;
  /** Whether a model agent with these parameters can call its model. Default: true. */
  isModelAvailable?(
    params: Readonly<Record<string, unknown>>,
    toolFormat: "completions" | "responses",
  ): boolean;
}

/** Agents that use a model. They follow a script if they have one. */
export const MODEL_AGENTS: readonly string[] = ["agent", "supervisor", "action-agent"];

/** Options of the built-in agents and actions. */
export interface BuiltinOptions {
  /** For model agents. */
  readonly models?: ModelEnvironment;
  /** The model of bundled example agents. Default: the variable `MAILROOM_MODELS_DEFAULT`, or none. */
  readonly defaultModel?: string;
  /** Access of the file actions. Default: none. */
  readonly files?: FileActionOptions;
  /** Options of the HTTP and interswarm actions. Default: a guard without exceptions. */
  readonly outbound?: OutboundOptions;
}

const scripted: AgentFactory = (context) =>
  scriptedAgentFromParams(context.params, {
    commTargets: context.commTargets,
    actions: context.tools.map(({ name }) => name),
  });

export function defaultBuiltins(options: BuiltinOptions = {}): Builtins {
  const models = { allow: options.outbound?.allow ?? [], ...options.models };
  const { MAILROOM_MODELS_DEFAULT: fromEnvironment } = options.models?.env ?? process.env;
  const defaultModel = options.defaultModel ?? fromEnvironment;
  return {
    ...(defaultModel !== undefined && defaultModel !== "" && { defaultModel }),
    agents: {
      scripted,
      agent: modelFactory("agent", models),
      "action-agent": modelFactory("action-agent", models),
      supervisor: modelFactory("supervisor", models),
    },
    actions: {
      current_time: clockAction(),
      ...inGroup("fs", fileActions(options.files ?? { roots: [] })),
      ...inGroup("http", httpActions(options.outbound)),
      ...inGroup("interswarm", interswarmActions(options.outbound)),
      ...inGroup("mcp", mcpActions(options.outbound)),
      ...inGroup("memory", memoryActions()),
    },
    isModelAvailable: (params, toolFormat) => isModelAvailable(params, toolFormat, options.models?.env),
  };
}

/**
 * The parameters with which an example agent uses a model; undefined if it follows its script, because no model is
 * configured or its key is missing.
 */
export function modelOfExample(
  builtins: Builtins,
  params: Readonly<Record<string, unknown>>,
  toolFormat: "completions" | "responses",
): Readonly<Record<string, unknown>> | undefined {
  const llm = params.llm ?? builtins.defaultModel;
  if (llm === undefined) return undefined;
  const chosen = { ...params, llm };
  return builtins.isModelAvailable?.(chosen, toolFormat) === true ? chosen : undefined;
}

function inGroup(group: string, actions: Readonly<Record<string, Action>>): Record<string, Action> {
  return Object.fromEntries(Object.entries(actions).map(([name, action]) => [`${group}/${name}`, action]));
}

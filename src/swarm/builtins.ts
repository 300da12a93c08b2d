/** What `mail:<name>` can name. Other parts of the program add to it by handing in a registry of their own. */
import { calculatorAction } from "../actions/calculator.js";
import { clockAction } from "../actions/clock.js";
import { describeNumbersAction } from "../actions/describe-numbers.js";
import { type FileActionOptions, fileActions } from "../actions/files/index.js";
import { forecastAction } from "../actions/forecast.js";
import { httpActions } from "../actions/http/index.js";
import { interswarmActions } from "../actions/interswarm/index.js";
import { mcpActions } from "../actions/mcp/index.js";
import { memoryActions } from "../actions/memory.js";
import type { OutboundOptions } from "../actions/outbound.js";
import type { AgentFactory } from "../agents/factory.js";
import { isModelAtHand, type ModelSurroundings, modelFactory } from "../agents/model/index.js";
import { scriptedAgentFromParams } from "../agents/scripted/agent.js";
import type { Action } from "../engine/agent.js";
import { EXAMPLE_NAMES, exampleFactory } from "./bundled/agents.js";

export interface Builtins {
  readonly agents: Readonly<Record<string, AgentFactory>>;
  readonly actions: Readonly<Record<string, Action>>;
  /** Whether a model agent with these parameters could ask its model now. Default: it could. */
  isModelAtHand?(params: Readonly<Record<string, unknown>>, toolFormat: "completions" | "responses"): boolean;
}

/** Agents that think with a model. They follow a script where they are given one. */
export const MODEL_AGENTS: readonly string[] = ["agent", "supervisor", "action-agent"];

/** What the built-in agents and actions need from whoever loads a swarm. */
export interface BuiltinOptions {
  /** For agents that think with a model. */
  readonly models?: ModelSurroundings;
  /** What file actions may touch. Default: nothing. */
  readonly files?: FileActionOptions;
  /** How HTTP and interswarm actions reach the outside. Default: behind a guard without exceptions. */
  readonly outbound?: OutboundOptions;
}

const scripted: AgentFactory = (wiring) =>
  scriptedAgentFromParams(wiring.params, {
    commTargets: wiring.commTargets,
    actions: wiring.tools.map(({ name }) => name),
  });

export function defaultBuiltins(options: BuiltinOptions = {}): Builtins {
  return {
    agents: {
      scripted,
      agent: modelFactory("agent", options.models),
      "action-agent": modelFactory("action-agent", options.models),
      supervisor: modelFactory("supervisor", options.models),
      ...Object.fromEntries(EXAMPLE_NAMES.map((name) => [`example/${name}`, exampleFactory(name)])),
    },
    actions: {
      "example/get_weather_forecast": forecastAction(),
      "example/calculate": calculatorAction(),
      "example/calculate_expression": calculatorAction("calculate_expression"),
      "example/describe_numbers": describeNumbersAction(),
      calculate: calculatorAction(),
      current_time: clockAction(),
      ...inGroup("fs", fileActions(options.files ?? { roots: [] })),
      ...inGroup("http", httpActions(options.outbound)),
      ...inGroup("interswarm", interswarmActions(options.outbound)),
      ...inGroup("mcp", mcpActions(options.outbound)),
      ...inGroup("memory", memoryActions()),
    },
    isModelAtHand: (params, toolFormat) => isModelAtHand(params, toolFormat, options.models?.env),
  };
}

function inGroup(group: string, actions: Readonly<Record<string, Action>>): Record<string, Action> {
  return Object.fromEntries(Object.entries(actions).map(([name, action]) => [`${group}/${name}`, action]));
}

/** The five bundled agents (decision H3): `mail:example/<name>` in files, `exampleAgent(name)` in code. */
import {
  type AgentContext,
  type AgentFactory,
  type ScriptedRuleInput,
  scriptedAgent,
} from "../../agents/index.js";
import type { Action } from "../../engine/index.js";
import {
  type Builtins,
  badReference,
  type DefinedAgent,
  defineAgent,
  modelOfExample,
} from "../../swarm/index.js";
import { calculatorAction } from "../actions/calculator.js";
import { describeNumbersAction } from "../actions/describe-numbers.js";
import { forecastAction } from "../actions/forecast.js";
import { analystRules, consultantRules, mathRules, weatherRules } from "./specialists.js";
import { supervisorRules } from "./supervisor.js";

export const EXAMPLE_NAMES = ["supervisor", "weather", "math", "consultant", "analyst"] as const;
export type ExampleName = (typeof EXAMPLE_NAMES)[number];

interface ExampleEnvironment {
  readonly commTargets: readonly string[];
  readonly actions: readonly string[];
}

interface Example {
  readonly description: string;
  /** Instructions for a model in the same role. */
  readonly prompt: string;
  readonly rules: (environment: ExampleEnvironment) => readonly ScriptedRuleInput[];
  /** Actions of the agent when it is created in code. */
  readonly actions: (options: ExampleClock) => readonly Action[];
}

export interface ExampleClock {
  /** The current date, for the forecast. Default: the system clock. */
  readonly now?: () => Date;
}

const EXAMPLES: Readonly<Record<ExampleName, Example>> = {
  supervisor: {
    description: "Answers users' questions with the help of the specialists.",
    prompt:
      "You lead a swarm of specialists. Ask the ones whose field the user's question touches, wait for all of their " +
      "answers, and complete the task with one answer that covers everything the user asked.",
    rules: ({ commTargets }) => supervisorRules(commTargets),
    actions: () => [],
  },
  weather: {
    description: "Provides the weather forecast (simulated).",
    prompt: "You answer questions about the weather. Look the forecast up, then respond to the sender.",
    rules: ({ actions }) => weatherRules(needed("weather", actions, ["get_weather_forecast"])),
    actions: ({ now }) => [forecastAction(now === undefined ? {} : { now })],
  },
  math: {
    description: "Calculates.",
    prompt: "You answer arithmetic questions. Use your calculator, then respond to the sender.",
    rules: ({ actions }) => mathRules(needed("math", actions, ["calculate", "calculate_expression"])),
    actions: () => [calculatorAction()],
  },
  consultant: {
    description: "Advises on decisions.",
    prompt: "You advise on decisions: name the assumptions, the costs and the smallest next step.",
    rules: () => consultantRules(),
    actions: () => [],
  },
  analyst: {
    description: "Describes figures.",
    prompt: "You analyze figures and say plainly what they show and what they do not.",
    rules: ({ actions }) => analystRules(actions.find((name) => name === "describe_numbers")),
    actions: () => [describeNumbersAction()],
  },
};

export function examplePrompt(name: ExampleName): string {
  return EXAMPLES[name].prompt;
}

export interface ExampleAgentOptions extends ExampleClock {
  readonly commTargets: readonly string[];
  /** Default: the example's own name. */
  readonly name?: string;
  readonly enableInterswarm?: boolean;
}

/** Returns a bundled agent with its actions. The supervisor is an entrypoint and completes tasks. */
export function exampleAgent(example: ExampleName, options: ExampleAgentOptions): DefinedAgent {
  const { description, rules, actions } = EXAMPLES[example];
  const own = actions(options);
  const leads = example === "supervisor";
  const environment = { commTargets: options.commTargets, actions: own.map(({ name }) => name) };
  return defineAgent({
    name: options.name ?? example,
    description,
    commTargets: options.commTargets,
    enableEntrypoint: leads,
    canCompleteTasks: leads,
    enableInterswarm: options.enableInterswarm ?? false,
    actions: own,
    run: scriptedAgent(rules(environment), environment),
  });
}

/**
 * A factory for swarm files, where the agent's actions are listed by name. It uses a model if one is configured and its
 * key is set, and follows its script otherwise.
 */
export function exampleFactory(example: ExampleName, builtins: Builtins): AgentFactory {
  const { prompt, rules } = EXAMPLES[example];
  const { agent: modelAgent } = builtins.agents;
  return (context) => {
    const params = modelOfExample(builtins, context.params, context.toolFormat);
    if (params !== undefined && modelAgent !== undefined) {
      return modelAgent({ ...context, params: { system: prompt, ...params } });
    }
    warnOfScript(example, context, context.params.llm ?? builtins.defaultModel);
    const environment = { commTargets: context.commTargets, actions: context.tools.map(({ name }) => name) };
    return scriptedAgent(rules(environment), environment);
  };
}

function warnOfScript(example: ExampleName, { params, warn }: AgentContext, llm: unknown): void {
  if (llm !== undefined) {
    warn({
      at: params.llm === undefined ? [] : ["llm"],
      message: `the bundled agent '${example}' follows its script, because the model '${String(llm)}' is not available`,
      hint: "set the key of its provider to use the model",
    });
    return;
  }
  for (const key of Object.keys(params)) {
    warn({
      at: [key],
      message: `'${key}' has no effect: no model is configured, so that the bundled agent '${example}' follows its script`,
      hint: "add llm to agent_params, or set models.default",
    });
  }
}

function needed(example: ExampleName, actions: readonly string[], names: readonly string[]): string {
  const found = actions.find((name) => names.includes(name));
  if (found !== undefined) return found;
  const [usual = ""] = names;
  throw badReference(
    `the bundled agent '${example}' requires the action '${usual}'`,
    `add "mail:example/${usual}" to action_imports and "${usual}" to the agent's actions`,
  );
}

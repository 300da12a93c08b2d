/** The five bundled agents (decisions H3): `mail:example/<name>` in files, `exampleAgent(name)` in code. */
import { calculatorAction } from "../../actions/calculator.js";
import { describeNumbersAction } from "../../actions/describe-numbers.js";
import { forecastAction } from "../../actions/forecast.js";
import type { AgentFactory } from "../../agents/factory.js";
import { scriptedAgent } from "../../agents/scripted/agent.js";
import type { ScriptedRuleInput } from "../../agents/scripted/rules.js";
import type { Action } from "../../engine/agent.js";
import { type DefinedAgent, defineAgent } from "../agent.js";
import { BadReferenceError } from "../references.js";
import { analystRules, consultantRules, mathRules, weatherRules } from "./specialists.js";
import { supervisorRules } from "./supervisor.js";

export const EXAMPLE_NAMES = ["supervisor", "weather", "math", "consultant", "analyst"] as const;
export type ExampleName = (typeof EXAMPLE_NAMES)[number];

interface Surroundings {
  readonly commTargets: readonly string[];
  readonly actions: readonly string[];
}

interface Example {
  readonly description: string;
  /** Instructions for a model in the same role. */
  readonly prompt: string;
  readonly rules: (surroundings: Surroundings) => readonly ScriptedRuleInput[];
  /** What it brings along when it is used from code. */
  readonly actions: (options: ExampleClock) => readonly Action[];
}

export interface ExampleClock {
  /** Today, for the forecast. Default: the system's clock. */
  readonly now?: () => Date;
}

const EXAMPLES: Readonly<Record<ExampleName, Example>> = {
  supervisor: {
    description: "Takes questions from users, asks the specialists and answers with what they found.",
    prompt:
      "You lead a swarm of specialists. Ask those whose field the user's question touches, wait for all of their " +
      "answers, and complete the task with one answer that covers everything the user asked.",
    rules: ({ commTargets }) => supervisorRules(commTargets),
    actions: () => [],
  },
  weather: {
    description: "Knows the weather forecast (simulated).",
    prompt: "You answer questions about the weather. Look the forecast up, then respond to whoever asked.",
    rules: ({ actions }) => weatherRules(needed("weather", actions, ["get_weather_forecast"])),
    actions: ({ now }) => [forecastAction(now === undefined ? {} : { now })],
  },
  math: {
    description: "Calculates.",
    prompt: "You answer questions of arithmetic. Use your calculator, then respond to whoever asked.",
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
    prompt: "You analyse figures and say plainly what they show and what they do not.",
    rules: ({ actions }) => analystRules(actions.find((name) => name === "describe_numbers")),
    actions: () => [describeNumbersAction()],
  },
};

export function examplePrompt(name: ExampleName): string {
  return EXAMPLES[name].prompt;
}

export function isExampleName(name: string): name is ExampleName {
  return Object.hasOwn(EXAMPLES, name);
}

export interface ExampleAgentOptions extends ExampleClock {
  readonly commTargets: readonly string[];
  /** Default: the example's own name. */
  readonly name?: string;
  readonly enableInterswarm?: boolean;
}

/** A bundled agent with its actions. The supervisor is an entrypoint and completes tasks. */
export function exampleAgent(example: ExampleName, options: ExampleAgentOptions): DefinedAgent {
  const { description, rules, actions } = EXAMPLES[example];
  const own = actions(options);
  const leads = example === "supervisor";
  const surroundings = { commTargets: options.commTargets, actions: own.map(({ name }) => name) };
  return defineAgent({
    name: options.name ?? example,
    description,
    commTargets: options.commTargets,
    enableEntrypoint: leads,
    canCompleteTasks: leads,
    enableInterswarm: options.enableInterswarm ?? false,
    actions: own,
    run: scriptedAgent(rules(surroundings), surroundings),
  });
}

/** The same for a swarm file, where the agent's actions are listed by name. */
export function exampleFactory(example: ExampleName): AgentFactory {
  return (wiring) => {
    for (const key of Object.keys(wiring.params)) {
      wiring.warn({
        at: [key],
        message: `'${key}' has no effect: the bundled agent '${example}' follows a script and asks no model`,
        hint: "use mail:agent or mail:supervisor for an agent with a model",
      });
    }
    const surroundings = { commTargets: wiring.commTargets, actions: wiring.tools.map(({ name }) => name) };
    return scriptedAgent(EXAMPLES[example].rules(surroundings), surroundings);
  };
}

function needed(example: ExampleName, actions: readonly string[], names: readonly string[]): string {
  const found = actions.find((name) => names.includes(name));
  if (found !== undefined) return found;
  const [usual = ""] = names;
  throw new BadReferenceError(
    `the bundled agent '${example}' needs the action '${usual}'`,
    `add "mail:example/${usual}" to action_imports and "${usual}" to the agent's actions`,
  );
}

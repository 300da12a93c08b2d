import type { Builtins } from "../swarm/index.js";
import { calculatorAction } from "./actions/calculator.js";
import { describeNumbersAction } from "./actions/describe-numbers.js";
import { forecastAction } from "./actions/forecast.js";
import { EXAMPLE_NAMES, exampleFactory, examplePrompt } from "./agents/agents.js";

/** Adds the example agents and actions, which swarm files name as `mail:example/<name>` and `mail:calculate`. */
export function withExamples(builtins: Builtins): Builtins {
  const examples = <T>(make: (name: (typeof EXAMPLE_NAMES)[number]) => T, prefix = "") =>
    Object.fromEntries(EXAMPLE_NAMES.map((name) => [`${prefix}${name}`, make(name)]));
  return {
    ...builtins,
    agents: { ...builtins.agents, ...examples((name) => exampleFactory(name, builtins), "example/") },
    actions: {
      "example/get_weather_forecast": forecastAction(),
      "example/calculate": calculatorAction(),
      "example/calculate_expression": calculatorAction("calculate_expression"),
      "example/describe_numbers": describeNumbersAction(),
      calculate: calculatorAction(),
      ...builtins.actions,
    },
    prompts: { ...builtins.prompts, ...examples(examplePrompt) },
  };
}

/** Actions: how to define them, and a few that are ready to use. */
export { CalculatorError, calculate, calculatorAction } from "./calculator.js";
export { type ActionOptions, type ActionParameters, type DefinedAction, defineAction } from "./define.js";
export { describeNumbersAction } from "./describe-numbers.js";
export { ForecastError, forecastAction } from "./forecast.js";
export { ActionDefinitionError, type SchemaPair } from "./parameters.js";
export type { DescribedSchema, StandardSchema } from "./standard-schema.js";

/** `defineAction`: an action of a swarm from a schema and a function. */
import type { Action, ActionContext } from "../engine/agent.js";
import type { JsonSchemaObject } from "./json-schema.js";
import { ActionDefinitionError, readParameters, type SchemaPair } from "./parameters.js";
import type { DescribedSchema, InputOf, OutputOf, StandardSchema } from "./standard-schema.js";

export type ActionParameters = DescribedSchema | SchemaPair | JsonSchemaObject;

/** What `run` gets: the schema's output, or a plain record where there is only a JSON Schema. */
type ArgumentsOf<P> = P extends StandardSchema
  ? OutputOf<P>
  : P extends { readonly schema: infer S extends StandardSchema }
    ? OutputOf<S>
    : Readonly<Record<string, unknown>>;

/** What a caller writes: the schema's input. */
export type CallArgumentsOf<P> = P extends StandardSchema
  ? InputOf<P>
  : P extends { readonly schema: infer S extends StandardSchema }
    ? InputOf<S>
    : Readonly<Record<string, unknown>>;

export interface ActionOptions<P extends ActionParameters> {
  /** How agents call it; unique in the swarm and not the name of a MAIL tool. */
  readonly name: string;
  /** What it does and when to use it, for the agents that choose. */
  readonly description: string;
  /**
   * The arguments: a schema that offers Standard JSON Schema, `{ schema, jsonSchema }`, or a plain JSON Schema.
   * They are checked before `run` is called; an agent that sends others is told what is wrong with them.
   */
  readonly parameters: P;
  /** A string is the result as it is; anything else is shown as JSON. A throw is a failed result. */
  readonly run: (args: ArgumentsOf<P>, context: ActionContext) => unknown;
  /** True if it may run again with the same `context.idempotencyKey` after a crash. Default: false. */
  readonly idempotent?: boolean;
  /** Milliseconds after which `context.signal` aborts. Default: the runtime's. */
  readonly timeLimit?: number;
}

/** An `Action` that remembers, for the compiler only, what arguments it is called with. */
export interface DefinedAction<CallArguments = Readonly<Record<string, unknown>>> extends Action {
  readonly "~arguments"?: CallArguments;
}

/** What every provider of models accepts as the name of a tool. */
const ACTION_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** @throws ActionDefinitionError (code `bad_action`) when the name, description, schema or limit is not usable. */
export function defineAction<const P extends ActionParameters>(
  options: ActionOptions<P>,
): DefinedAction<CallArgumentsOf<P>> {
  const { name, description, run, idempotent = false, timeLimit } = options;
  if (!ACTION_NAME.test(name)) {
    throw new ActionDefinitionError(
      `action ${JSON.stringify(name)}: a name has 1 to 64 letters, digits, '_' or '-', so that every model can call it.`,
    );
  }
  if (description.trim() === "") {
    throw new ActionDefinitionError(
      `action '${name}': 'description' is empty. Say what it does: agents choose by it.`,
    );
  }
  if (timeLimit !== undefined && !(Number.isFinite(timeLimit) && timeLimit > 0)) {
    throw new ActionDefinitionError(`action '${name}': 'timeLimit' is in milliseconds and greater than 0.`);
  }
  const parameters = readParameters(name, options.parameters);
  return {
    name,
    description,
    parameters: parameters.jsonSchema,
    check: (args) => parameters.check(args),
    // The runtime hands in the value that `check` returned, so its type is the schema's output.
    run: (args, context) => run(args as ArgumentsOf<P>, context),
    idempotent,
    ...(timeLimit === undefined ? {} : { timeLimit }),
  };
}

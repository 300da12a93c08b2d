/** `defineAction`: creates an action from a schema and a function. */
import type { Action, ActionContext, ApprovalContext } from "../engine/index.js";
import type { JsonSchemaObject } from "./json-schema.js";
import { badAction, type Parameters, readParameters, type SchemaPair } from "./parameters.js";
import type { DescribedSchema, InputOf, OutputOf, StandardSchema } from "./standard-schema.js";

export type ActionParameters = DescribedSchema | SchemaPair | JsonSchemaObject;

/** The input of `run`: the schema's output, or a plain record for a JSON Schema. */
type ArgumentsOf<P> = P extends StandardSchema
  ? OutputOf<P>
  : P extends { readonly schema: infer S extends StandardSchema }
    ? OutputOf<S>
    : Readonly<Record<string, unknown>>;

/** The arguments of a caller: the schema's input. */
export type CallArgumentsOf<P> = P extends StandardSchema
  ? InputOf<P>
  : P extends { readonly schema: infer S extends StandardSchema }
    ? InputOf<S>
    : Readonly<Record<string, unknown>>;

/** What `defineAction` makes an action from. */
export interface ActionOptions<P extends ActionParameters> {
  /** The name for agents. Must be unique in the swarm and not the name of a MAIL tool. */
  readonly name: string;
  /** What it does and when to use it. Agents choose by this text. */
  readonly description: string;
  /**
   * The arguments: a schema that offers Standard JSON Schema, `{ schema, jsonSchema }`, or a plain JSON Schema.
   * Arguments are checked before `run` is called. An agent that sends invalid ones receives every problem.
   */
  readonly parameters: P;
  /** A string is the result; other values are converted to JSON. A throw is a failed result. */
  readonly run: (args: ArgumentsOf<P>, context: ActionContext) => unknown;
  /** Whether it may run again with the same `context.idempotencyKey` after a crash. Default: false. */
  readonly idempotent?: boolean;
  /** Milliseconds after which `context.signal` aborts. Default: the runtime's. */
  readonly timeLimit?: number;
  /** `false`: never runs beside another action of the same answer. Default: true. */
  readonly parallel?: boolean;
  /**
   * Which calls a person must approve before they run: `true` for all, or a predicate over the checked arguments. The
   * task pauses meanwhile. Default: none.
   */
  readonly approval?:
    | boolean
    | ((args: ArgumentsOf<P>, context: ApprovalContext) => boolean | Promise<boolean>);
  /** Milliseconds after which an approval can no longer be given. Default: the runtime's. */
  readonly approvalTimeout?: number;
}

/** An `Action` with the type of its arguments, for the compiler only. */
export interface DefinedAction<CallArguments = Readonly<Record<string, unknown>>> extends Action {
  readonly "~arguments"?: CallArguments;
}

/** Tool names that every model provider accepts. */
const ACTION_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Defines an action: a function that agents can call. Its start and its end are journaled (law 4).
 * @throws MailroomError `bad_action` when the name, description, schema or limit is invalid.
 * @example
 * defineAction({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   parameters: z.object({ a: z.number(), b: z.number() }),
 *   idempotent: true,
 *   run: ({ a, b }) => `${a + b}`,
 * });
 */
export function defineAction<const P extends ActionParameters>(
  options: ActionOptions<P>,
): DefinedAction<CallArgumentsOf<P>> {
  return actionWith(options, (name) => readParameters(name, options.parameters));
}

/** @param read reads `parameters`. @throws MailroomError `bad_action` */
export function actionWith<const P extends ActionParameters>(
  options: ActionOptions<P>,
  read: (name: string) => Parameters,
): DefinedAction<CallArgumentsOf<P>> {
  const {
    name,
    description,
    run,
    idempotent = false,
    timeLimit,
    parallel,
    approval,
    approvalTimeout,
  } = options;
  if (!ACTION_NAME.test(name)) {
    throw badAction(
      `action ${JSON.stringify(name)}: a name must have 1 to 64 letters, digits, '_' or '-', so that every model can call it`,
    );
  }
  if (description.trim() === "") {
    throw badAction(
      `action '${name}': 'description' is empty; describe what it does, because agents choose by it`,
    );
  }
  if (timeLimit !== undefined && !(Number.isFinite(timeLimit) && timeLimit > 0)) {
    throw badAction(`action '${name}': 'timeLimit' must be a number of milliseconds greater than 0`);
  }
  if (approvalTimeout !== undefined && !(Number.isFinite(approvalTimeout) && approvalTimeout > 0)) {
    throw badAction(`action '${name}': 'approvalTimeout' must be a number of milliseconds greater than 0`);
  }
  const parameters = read(name);
  return {
    name,
    description,
    parameters: parameters.jsonSchema,
    check: (args) => parameters.check(args),
    // The runtime passes the value that `check` returned, so its type is the schema's output.
    run: (args, context) => run(args as ArgumentsOf<P>, context),
    idempotent,
    ...(timeLimit === undefined ? {} : { timeLimit }),
    ...(parallel === undefined ? {} : { parallel }),
    ...(approval === undefined
      ? {}
      : {
          approval:
            typeof approval === "boolean"
              ? approval
              : (args: unknown, context: ApprovalContext) => approval(args as ArgumentsOf<P>, context),
        }),
    ...(approvalTimeout === undefined ? {} : { approvalTimeout }),
  };
}

/** Resolves the references to a swarm's actions: functions of inline actions, and imports. */
import { defineAction } from "../actions/index.js";
import { didYouMean, isRecord } from "../base/index.js";
import type { Action, ActionContext } from "../engine/index.js";
import type { ActionEntry, PathSegment, SwarmEntry, UnplacedProblem } from "../mail/index.js";
import { badReference, parseReference } from "./references.js";
import { attempt, isFunction, loadExport, own, type Resolver } from "./resolver.js";

export interface ResolvedAction {
  readonly action: Action;
  readonly imported: boolean;
  readonly at: readonly PathSegment[];
}

/** Returns every action that could be resolved, and reports the others. */
export async function resolveActions(
  swarm: SwarmEntry,
  resolver: Resolver,
  errors: UnplacedProblem[],
): Promise<readonly ResolvedAction[]> {
  const resolved: ResolvedAction[] = [];
  for (const [index, entry] of swarm.actions.entries()) {
    const at = ["actions", index];
    const action = await attempt([...at, "function"], errors, () => inlineAction(entry, resolver));
    if (action !== undefined) resolved.push({ action, imported: false, at });
  }
  for (const [index, text] of swarm.action_imports.entries()) {
    const at = ["action_imports", index];
    const action = await attempt(at, errors, () => importedAction(text, resolver));
    if (action !== undefined) resolved.push({ action, imported: true, at });
  }
  return resolved;
}

async function inlineAction(entry: ActionEntry, resolver: Resolver): Promise<Action> {
  const found = entry.function === undefined ? undefined : await findFunction(entry.function, resolver);
  const run = isFunction<ActionFunction>(found) ? found : () => refuseToRun(entry.name);
  const inline = defineAction({
    name: entry.name,
    description: entry.description,
    parameters: entry.parameters,
    idempotent: entry.idempotent,
    ...(entry.time_limit_ms === undefined ? {} : { timeLimit: entry.time_limit_ms }),
    run,
  });
  return isAction(found) ? describedBy(inline, found) : inline;
}

/** The action with the words of the file. Arguments pass both schemas, and what needs a person's approval still does. */
function describedBy(file: Action, action: Action): Action {
  const { parallel, approval, approvalTimeout } = action;
  return {
    ...file,
    async check(args) {
      const checked = await file.check(args);
      return checked.ok ? action.check(args) : checked;
    },
    run: (args, context) => action.run(args, context),
    ...(parallel === undefined ? {} : { parallel }),
    ...(approval === undefined ? {} : { approval }),
    ...(approvalTimeout === undefined ? {} : { approvalTimeout }),
  };
}

function refuseToRun(name: string): never {
  throw new Error(
    `action '${name}' has no function: each call pauses at a breakpoint until a person supplies the result`,
  );
}

type ActionFunction = (args: Readonly<Record<string, unknown>>, context: ActionContext) => unknown;

async function findFunction(text: string, resolver: Resolver): Promise<ActionFunction | Action> {
  const reference = parseReference(text, "action");
  const value =
    reference.kind === "builtin"
      ? builtinAction(reference.name, resolver)
      : await loadExport(reference, resolver);
  if (isFunction<ActionFunction>(value) || isAction(value)) return value;
  throw badReference(
    `'${text}' is not a function`,
    "export a function (args, context) => result, or the result of defineAction",
  );
}

async function importedAction(text: string, resolver: Resolver): Promise<Action> {
  const reference = parseReference(text, "action");
  if (reference.kind === "builtin") return builtinAction(reference.name, resolver);
  const value = await loadExport(reference, resolver);
  if (isAction(value)) return value;
  throw badReference(`'${text}' is not an action`, "export the result of defineAction");
}

function builtinAction(name: string, { builtins }: Resolver): Action {
  const action = own(builtins.actions, name);
  if (action !== undefined) return action;
  throw badReference(
    `unknown built-in action 'mail:${name}'`,
    didYouMean(name, Object.keys(builtins.actions)),
  );
}

function isAction(value: unknown): value is Action {
  return (
    isRecord(value) &&
    typeof value.name === "string" &&
    typeof value.description === "string" &&
    isRecord(value.parameters) &&
    typeof value.check === "function" &&
    typeof value.run === "function" &&
    typeof value.idempotent === "boolean"
  );
}

/** Follows the references to a swarm's actions: functions of inline actions, and imports. */
import { defineAction } from "../actions/define.js";
import type { Action, ActionContext } from "../engine/agent.js";
import { isRecord } from "../mail/record.js";
import type { Finding, PathSegment } from "../mail/swarm-file/problems.js";
import type { ActionEntry, SwarmEntry } from "../mail/swarm-file/schema.js";
import { didYouMean } from "../mail/swarm-file/suggest.js";
import { BadReferenceError, parseReference } from "./references.js";
import { attempt, isFunction, loadExport, own, type Resolver } from "./resolver.js";

export interface ResolvedAction {
  readonly action: Action;
  readonly imported: boolean;
  readonly at: readonly PathSegment[];
}

/** Every action that could be resolved; for each of the others there is a finding. */
export async function resolveActions(
  swarm: SwarmEntry,
  resolver: Resolver,
  errors: Finding[],
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
  const run = entry.function === undefined ? undefined : await findFunction(entry.function, resolver);
  return defineAction({
    name: entry.name,
    description: entry.description,
    parameters: entry.parameters,
    idempotent: entry.idempotent,
    ...(entry.time_limit_ms === undefined ? {} : { timeLimit: entry.time_limit_ms }),
    run: run ?? (() => refuseToRun(entry.name)),
  });
}

function refuseToRun(name: string): never {
  throw new Error(`action '${name}' has no function: its calls are answered by a person at a breakpoint`);
}

type ActionFunction = (args: Readonly<Record<string, unknown>>, context: ActionContext) => unknown;

async function findFunction(text: string, resolver: Resolver): Promise<ActionFunction> {
  const reference = parseReference(text, "action");
  const value =
    reference.kind === "builtin"
      ? builtinAction(reference.name, resolver)
      : await loadExport(reference, resolver);
  if (isFunction<ActionFunction>(value)) return value;
  if (isAction(value)) return (args, context) => checkAndRun(value, args, context);
  throw new BadReferenceError(
    `'${text}' is not a function`,
    "export a function (args, context) => result, or what defineAction returns",
  );
}

/** The file's schema was checked already; an action that has one of its own is given what that one makes of it. */
async function checkAndRun(
  action: Action,
  args: Readonly<Record<string, unknown>>,
  context: ActionContext,
): Promise<unknown> {
  const checked = await action.check(args);
  if (!checked.ok) throw new Error(checked.message);
  return action.run(checked.value, context);
}

async function importedAction(text: string, resolver: Resolver): Promise<Action> {
  const reference = parseReference(text, "action");
  if (reference.kind === "builtin") return builtinAction(reference.name, resolver);
  const value = await loadExport(reference, resolver);
  if (isAction(value)) return value;
  throw new BadReferenceError(`'${text}' is not an action`, "export what defineAction returns");
}

function builtinAction(name: string, { builtins }: Resolver): Action {
  const action = own(builtins.actions, name);
  if (action !== undefined) return action;
  throw new BadReferenceError(
    `there is no built-in action 'mail:${name}'`,
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

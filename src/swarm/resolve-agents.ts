/** Resolves the references to a swarm's agents. */

import type { AgentContext, AgentFactory } from "../agents/index.js";
import { findingsOf, type MailFunction, starting } from "../agents/index.js";
import { didYouMean, isRecord } from "../base/index.js";
import type { AgentEntry, SwarmEntry, UnplacedProblem } from "../mail/index.js";
import { within } from "../mail/index.js";
import { type DefinedAgent, defineAgent } from "./agent.js";
import { toBudget } from "./budget.js";
import { type Builtins, MODEL_AGENTS, modelOfExample } from "./builtins.js";
import { badReference, parseReference } from "./references.js";
import type { ResolvedAction } from "./resolve-actions.js";
import { exampleOfPrompt, resolveParams } from "./resolve-params.js";
import { attempt, isFunction, loadExport, own, type Resolver, toProblem } from "./resolver.js";

export async function resolveAgents(
  swarm: SwarmEntry,
  actions: readonly ResolvedAction[],
  resolver: Resolver,
  errors: UnplacedProblem[],
  warnings: UnplacedProblem[],
): Promise<readonly DefinedAgent[]> {
  const agents: DefinedAgent[] = [];
  for (const [index, entry] of swarm.agents.entries()) {
    const traits = toTraits(entry);
    if (entry.factory === undefined) {
      agents.push(defineAgent({ ...traits, remote: true }));
      continue;
    }
    const start = entry.speculate === undefined ? {} : { speculate: entry.speculate };
    const origin = { factory: entry.factory, params: entry.agent_params, ...start };
    const run = await resolveImplementation(swarm, entry, index, actions, resolver, errors, warnings);
    if (run !== undefined) agents.push({ ...defineAgent({ ...traits, ...start, run }), origin });
  }
  return agents;
}

function toTraits(entry: AgentEntry) {
  return {
    name: entry.name,
    ...(entry.description === undefined ? {} : { description: entry.description }),
    commTargets: entry.comm_targets,
    enableEntrypoint: entry.enable_entrypoint,
    enableInterswarm: entry.enable_interswarm,
    canCompleteTasks: entry.can_complete_tasks,
    toolFormat: entry.tool_format,
    actions: entry.actions,
    excludeTools: entry.exclude_tools,
    ...toBudget(entry.budget),
  };
}

async function resolveImplementation(
  swarm: SwarmEntry,
  entry: AgentEntry,
  index: number,
  actions: readonly ResolvedAction[],
  resolver: Resolver,
  errors: UnplacedProblem[],
  warnings: UnplacedProblem[],
): Promise<MailFunction | undefined> {
  const at = ["agents", index, "factory"];
  const paramsAt = ["agents", index, "agent_params"];
  const warn = (finding: UnplacedProblem): void => void warnings.push(within(paramsAt, finding));
  const source = await attempt(at, errors, () => findFactory(entry, resolver, warn));
  if (source === undefined) return undefined;
  if (source.kind === "run") return source.run;
  const before = errors.length;
  // Bundled agents without a model follow their own scripts and ignore its parameters.
  const params = source.scripted
    ? entry.agent_params
    : await resolveParams(entry.agent_params, paramsAt, resolver, errors);
  if (errors.length > before) return undefined;
  const context: AgentContext = {
    swarm: swarm.name,
    ...toTraits(entry),
    excludeTools: [...new Set([...swarm.exclude_tools, ...entry.exclude_tools])],
    tools: actions
      .filter(({ action }) => entry.actions.includes(action.name))
      .map(({ action: { name, description, parameters } }) => ({ name, description, parameters })),
    params,
    untrusted: resolver.modules === false,
    warn,
  };
  try {
    return await source.factory(context);
  } catch (error) {
    const findings = findingsOf(error);
    if (findings === undefined) errors.push(toProblem(at, error));
    else errors.push(...findings.map((found) => within(paramsAt, found)));
    return undefined;
  }
}

type ImplementationSource =
  | { readonly kind: "factory"; readonly factory: AgentFactory; readonly scripted: boolean }
  | { readonly kind: "run"; readonly run: MailFunction };

async function findFactory(
  entry: AgentEntry,
  resolver: Resolver,
  warn: (finding: UnplacedProblem) => void,
): Promise<ImplementationSource> {
  const text = entry.factory ?? "";
  const reference = parseReference(text, "agent");
  if (reference.kind === "builtin")
    return builtinFactory(reference.name, text, entry, resolver.builtins, warn);
  const value = await loadExport(reference, resolver);
  if (isFunction<AgentFactory>(value)) return { kind: "factory", factory: value, scripted: false };
  if (isRecord(value) && isFunction<MailFunction>(value.run)) {
    const { run, speculate } = value;
    return {
      kind: "run",
      run: starting((mail) => run.call(value, mail), asBoolean(speculate) ?? run.speculate),
    };
  }
  if (
    isRecord(value) &&
    isRecord(value.implementation) &&
    isFunction<MailFunction>(value.implementation.run)
  ) {
    const { run, speculate } = value.implementation;
    return { kind: "run", run: starting((mail) => run(mail), asBoolean(speculate)) };
  }
  throw badReference(
    `'${text}' is neither a factory nor an agent`,
    "export a function (context) => (mail) => { … }, an object { run(mail) { … } }, or the result of defineAgent",
  );
}

function asBoolean(speculate: unknown): boolean | undefined {
  return typeof speculate === "boolean" ? speculate : undefined;
}

function builtinFactory(
  name: string,
  text: string,
  entry: AgentEntry,
  builtins: Builtins,
  warn: (finding: UnplacedProblem) => void,
): ImplementationSource {
  const known = builtins.agents;
  const found = own(known, name);
  if (!MODEL_AGENTS.includes(name)) {
    if (found !== undefined) {
      const scripted =
        name.startsWith("example/") &&
        modelOfExample(builtins, entry.agent_params, entry.tool_format) === undefined;
      return { kind: "factory", factory: found, scripted };
    }
    const hint = didYouMean(name, [...Object.keys(known), ...MODEL_AGENTS]);
    throw badReference(`unknown built-in agent 'mail:${name}'`, hint);
  }
  const scripted = own(known, "scripted");
  if (scripted !== undefined && entry.agent_params.rules !== undefined) {
    return { kind: "factory", factory: scripted, scripted: false };
  }
  const example = exampleOfPrompt(entry.agent_params.system);
  const standIn = example === undefined ? undefined : own(known, `example/${example}`);
  const available =
    found !== undefined && builtins.isModelAvailable?.(entry.agent_params, entry.tool_format) !== false;
  if (standIn !== undefined && !available) {
    warn({
      at: ["system"],
      message: `the bundled example '${example}' follows its script, because its model is not available`,
      hint: "set the key of its model's provider to use the model",
    });
    return { kind: "factory", factory: standIn, scripted: true };
  }
  if (found !== undefined) return { kind: "factory", factory: found, scripted: false };
  throw badReference(
    `'${text}' requires a model, and model agents are not part of this installation`,
    "use module:./file.js#export for your own agent, or add a script (agent_params.rules)",
  );
}

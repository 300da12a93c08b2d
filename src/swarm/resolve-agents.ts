/** Follows the references to a swarm's agents: what sits behind each address. */
import { AgentParamsError } from "../agents/errors.js";
import type { AgentFactory, AgentWiring } from "../agents/factory.js";
import { type MailFunction, starting } from "../agents/function.js";
import { isRecord } from "../mail/record.js";
import type { Finding } from "../mail/swarm-file/problems.js";
import { within } from "../mail/swarm-file/read.js";
import type { AgentEntry, SwarmEntry } from "../mail/swarm-file/schema.js";
import { didYouMean } from "../mail/swarm-file/suggest.js";
import { type DefinedAgent, defineAgent } from "./agent.js";
import { type Builtins, MODEL_AGENTS } from "./builtins.js";
import { BadReferenceError, parseReference } from "./references.js";
import type { ResolvedAction } from "./resolve-actions.js";
import { exampleOfPrompt, resolveParams } from "./resolve-params.js";
import { attempt, isFunction, loadExport, own, type Resolver, toFinding } from "./resolver.js";

export async function resolveAgents(
  swarm: SwarmEntry,
  actions: readonly ResolvedAction[],
  resolver: Resolver,
  errors: Finding[],
  warnings: Finding[],
): Promise<readonly DefinedAgent[]> {
  const agents: DefinedAgent[] = [];
  for (const [index, entry] of swarm.agents.entries()) {
    const traits = traitsOf(entry);
    if (entry.factory === undefined) {
      agents.push(defineAgent({ ...traits, remote: true }));
      continue;
    }
    const start = entry.speculate === undefined ? {} : { speculate: entry.speculate };
    const origin = { factory: entry.factory, params: entry.agent_params, ...start };
    const run = await resolveMind(swarm, entry, index, actions, resolver, errors, warnings);
    if (run !== undefined) agents.push({ ...defineAgent({ ...traits, ...start, run }), origin });
  }
  return agents;
}

function traitsOf(entry: AgentEntry) {
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
  };
}

async function resolveMind(
  swarm: SwarmEntry,
  entry: AgentEntry,
  index: number,
  actions: readonly ResolvedAction[],
  resolver: Resolver,
  errors: Finding[],
  warnings: Finding[],
): Promise<MailFunction | undefined> {
  const at = ["agents", index, "factory"];
  const paramsAt = ["agents", index, "agent_params"];
  const warn = (finding: Finding): void => void warnings.push(within(paramsAt, finding));
  const source = await attempt(at, errors, () => findFactory(entry, resolver, warn));
  if (source === undefined) return undefined;
  if (source.kind === "run") return source.run;
  const before = errors.length;
  // The bundled agents follow scripts of their own: what was written for a model is not looked at.
  const params = source.scripted
    ? entry.agent_params
    : await resolveParams(entry.agent_params, paramsAt, resolver, errors);
  if (errors.length > before) return undefined;
  const wiring: AgentWiring = {
    swarm: swarm.name,
    ...traitsOf(entry),
    excludeTools: [...new Set([...swarm.exclude_tools, ...entry.exclude_tools])],
    tools: actions
      .filter(({ action }) => entry.actions.includes(action.name))
      .map(({ action: { name, description, parameters } }) => ({ name, description, parameters })),
    params,
    untrusted: resolver.modules === false,
    warn,
  };
  try {
    return await source.factory(wiring);
  } catch (error) {
    if (error instanceof AgentParamsError)
      errors.push(...error.findings.map((found) => within(paramsAt, found)));
    else errors.push(toFinding(at, error));
    return undefined;
  }
}

type MindSource =
  | { readonly kind: "factory"; readonly factory: AgentFactory; readonly scripted: boolean }
  | { readonly kind: "run"; readonly run: MailFunction };

async function findFactory(
  entry: AgentEntry,
  resolver: Resolver,
  warn: (finding: Finding) => void,
): Promise<MindSource> {
  const text = entry.factory ?? "";
  const reference = parseReference(text, "agent");
  if (reference.kind === "builtin")
    return builtinFactory(reference.name, text, entry, resolver.builtins, warn);
  const value = await loadExport(reference, resolver);
  if (isFunction<AgentFactory>(value)) return { kind: "factory", factory: value, scripted: false };
  if (isRecord(value) && isFunction<MailFunction>(value.run)) {
    const { run, speculate } = value;
    return { kind: "run", run: starting((mail) => run.call(value, mail), wish(speculate) ?? run.speculate) };
  }
  if (isRecord(value) && isRecord(value.mind) && isFunction<MailFunction>(value.mind.run)) {
    const { run, speculate } = value.mind;
    return { kind: "run", run: starting((mail) => run(mail), wish(speculate)) };
  }
  throw new BadReferenceError(
    `'${text}' is neither a factory nor an agent`,
    "export a function (wiring) => (mail) => { … }, an object { run(mail) { … } }, or what defineAgent returns",
  );
}

function wish(speculate: unknown): boolean | undefined {
  return typeof speculate === "boolean" ? speculate : undefined;
}

function builtinFactory(
  name: string,
  text: string,
  entry: AgentEntry,
  builtins: Builtins,
  warn: (finding: Finding) => void,
): MindSource {
  const known = builtins.agents;
  const found = own(known, name);
  if (!MODEL_AGENTS.includes(name)) {
    if (found !== undefined)
      return { kind: "factory", factory: found, scripted: name.startsWith("example/") };
    const hint = didYouMean(name, [...Object.keys(known), ...MODEL_AGENTS]);
    throw new BadReferenceError(`there is no built-in agent 'mail:${name}'`, hint);
  }
  const scripted = own(known, "scripted");
  if (scripted !== undefined && entry.agent_params.rules !== undefined) {
    return { kind: "factory", factory: scripted, scripted: false };
  }
  const example = exampleOfPrompt(entry.agent_params.system);
  const standIn = example === undefined ? undefined : own(known, `example/${example}`);
  const atHand =
    found !== undefined && builtins.isModelAtHand?.(entry.agent_params, entry.tool_format) !== false;
  if (standIn !== undefined && !atHand) {
    warn({
      at: ["system"],
      message: `this is the bundled example '${example}': it runs by its script, for its model is not at hand`,
      hint: "set the key of its model's provider to have it think",
    });
    return { kind: "factory", factory: standIn, scripted: true };
  }
  if (found !== undefined) return { kind: "factory", factory: found, scripted: false };
  throw new BadReferenceError(
    `'${text}' needs a model, and model agents are not part of this installation`,
    "use module:./file.js#export for an agent of your own, or give it a script (agent_params.rules)",
  );
}

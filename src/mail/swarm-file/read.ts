/** Reads a swarm file: text in, swarms and warnings out, or every problem with its place. */
import { type AgentOutline, checkSwarm, type SwarmOutline } from "./check.js";
import { JsonTextError, type LocatedJson, parseJsonText } from "./json-text.js";
import { type Finding, formatPath, type PathSegment, type Problem, SwarmFileError } from "./problems.js";
import { type AgentEntry, type SwarmEntry, SwarmList } from "./schema.js";
import { zodFindings } from "./zod-findings.js";

/** A file whose parts have the right form; whether they fit together is not checked yet. */
export interface ParsedSwarmFile {
  readonly source: string;
  readonly swarms: readonly SwarmEntry[];
  /** Places in the findings begin with the index of the swarm. */
  readonly warnings: readonly Finding[];
  /** Gives a finding its path and its place in the text. */
  locate(finding: Finding): Problem;
}

export interface SwarmFileContents {
  readonly swarms: readonly SwarmEntry[];
  readonly warnings: readonly Problem[];
}

/**
 * @param source what the file is called in messages.
 * @throws SwarmFileError with everything that is wrong with the form.
 */
export function parseSwarmFile(text: string, source = "swarms.json"): ParsedSwarmFile {
  const json = readJson(text, source);
  const { list, root, strays } = listIn(json.value);
  const locate = (finding: Finding): Problem => locateIn(json, root, finding);
  const parsed = SwarmList.safeParse(list);
  const unknown = strays.map(
    (key): Problem => ({
      path: key,
      ...json.placeOf([key]),
      message: `unknown key '${key}'`,
      hint: "beside 'swarms' there can only be '$schema'",
    }),
  );
  const twice = json.duplicateKeys.map((path) => ({
    at: path.slice(root.length),
    message: `the key '${String(path.at(-1))}' is given twice`,
    hint: "only the last one would count: take one of them out",
  }));
  if (!parsed.success || twice.length > 0 || unknown.length > 0) {
    const issues = parsed.success ? [] : zodFindings(SwarmList, parsed.error.issues).map(withAdvice);
    throw new SwarmFileError(source, [...unknown, ...[...twice, ...issues].map(locate)]);
  }
  return { source, swarms: parsed.data, warnings: parsed.data.flatMap(idleKeys), locate };
}

/**
 * Everything about a file that can be known without loading what it refers to. Names of imported actions are not
 * known here, so a swarm with `action_imports` is not searched for unknown actions.
 * @throws SwarmFileError with everything that is wrong.
 */
export function readSwarmFile(text: string, source = "swarms.json"): SwarmFileContents {
  const file = parseSwarmFile(text, source);
  const errors: Finding[] = [...checkSwarmNames(file.swarms)];
  const warnings: Finding[] = [...file.warnings];
  for (const [index, swarm] of file.swarms.entries()) {
    errors.push(...checkReferences(swarm).map((finding) => within([index], finding)));
    const found = checkSwarm(outlineOfEntry(swarm));
    errors.push(...found.errors.map((finding) => within([index], finding)));
    warnings.push(...found.warnings.map((finding) => within([index], finding)));
  }
  if (errors.length > 0) throw new SwarmFileError(source, errors.map(file.locate));
  return { swarms: file.swarms, warnings: warnings.map(file.locate) };
}

/** @param imported actions that `action_imports` turned out to be; absent while that is unknown. */
export function outlineOfEntry(
  swarm: SwarmEntry,
  imported?: readonly { readonly name: string; readonly at: readonly PathSegment[] }[],
): SwarmOutline {
  const inline = swarm.actions.map(({ name }, index) => ({ name, at: ["actions", index, "name"] }));
  return {
    name: swarm.name,
    entrypoint: swarm.entrypoint,
    enable_interswarm: swarm.enable_interswarm,
    agents: swarm.agents satisfies readonly AgentOutline[],
    breakpoint_tools: swarm.breakpoint_tools,
    exclude_tools: swarm.exclude_tools,
    actions: [...inline, ...(imported ?? [])],
    allActionsKnown: imported !== undefined || swarm.action_imports.length === 0,
  };
}

export function checkSwarmNames(swarms: readonly SwarmEntry[]): Finding[] {
  return swarms.flatMap(({ name }, index) =>
    swarms.findIndex((other) => other.name === name) < index
      ? [
          {
            at: [index, "name"],
            message: `swarm '${name}' is defined twice`,
            hint: "give one of them another name",
          },
        ]
      : [],
  );
}

/** Who must say what makes it run, and who must not. */
export function checkReferences(swarm: SwarmEntry): Finding[] {
  const findings: Finding[] = [];
  for (const [index, agent] of swarm.agents.entries()) {
    if (agent.remote && agent.factory !== undefined) {
      findings.push({
        at: ["agents", index, "factory"],
        message: `agent '${agent.name}' is remote: it is served from outside and has no factory`,
        hint: "take out either remote or factory",
      });
    }
    if (agent.remote && agent.speculate !== undefined) {
      findings.push({
        at: ["agents", index, "speculate"],
        message: `agent '${agent.name}' is remote: it is only ever handed mail that is durable`,
        hint: "take out speculate",
      });
    }
    if (!agent.remote && agent.factory === undefined) {
      findings.push({
        at: ["agents", index],
        message: `agent '${agent.name}' has no factory`,
        hint: 'say what makes it ("factory": "module:./file.js#export"), or set remote to true',
      });
    }
  }
  for (const [index, action] of swarm.actions.entries()) {
    if (action.function !== undefined || swarm.breakpoint_tools.includes(action.name)) continue;
    findings.push({
      at: ["actions", index],
      message: `action '${action.name}' has no function`,
      hint: 'say what runs ("function": "module:./file.js#export"), or list it in breakpoint_tools',
    });
  }
  return findings;
}

export function within(prefix: readonly PathSegment[], finding: Finding): Finding {
  return { ...finding, at: [...prefix, ...finding.at] };
}

function readJson(text: string, source: string): LocatedJson {
  try {
    return parseJsonText(text);
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    const problem = { path: "", ...error.place, message: `not valid JSON: ${error.message}` };
    throw new SwarmFileError(source, [problem], { cause: error });
  }
}

interface FoundList {
  readonly list: unknown;
  /** The path to the list in the text. */
  readonly root: readonly PathSegment[];
  /** Keys beside it that should not be there. */
  readonly strays: readonly string[];
}

function listIn(value: unknown): FoundList {
  const isWrapper = typeof value === "object" && value !== null && !Array.isArray(value) && "swarms" in value;
  if (!isWrapper) return { list: value, root: [], strays: [] };
  const strays = Object.keys(value).filter((key) => key !== "swarms" && key !== "$schema");
  return { list: value.swarms, root: ["swarms"], strays };
}

function locateIn(json: LocatedJson, root: readonly PathSegment[], finding: Finding): Problem {
  const { at, ...rest } = finding;
  return { path: formatPath(["swarms", ...at]), ...json.placeOf([...root, ...at]), ...rest };
}

/** Keys that people bring from other places. */
const ADVICE: Readonly<Record<string, string>> = {
  llm: "parameters of the model belong into agent_params",
  system: "parameters of the model belong into agent_params",
  model: "parameters of the model belong into agent_params",
};

function withAdvice(finding: Finding): Finding {
  if (finding.at.length === 0) return { ...finding, hint: "a swarm file is a list of swarms: [ { … } ]" };
  const key = finding.at.at(-1);
  const isAgentKey = finding.at.length === 4 && finding.at[1] === "agents";
  const advice = isAgentKey && typeof key === "string" ? ADVICE[key] : undefined;
  return advice === undefined || !finding.message.startsWith("unknown key")
    ? finding
    : { ...finding, hint: advice };
}

/** Keys of the reference implementation that mean nothing here: said once, never fatal. */
function idleKeys(swarm: SwarmEntry, index: number): Finding[] {
  const warnings = swarm.agents.flatMap((agent, position) => idleParams(agent, [index, "agents", position]));
  if (swarm.enable_db_agent_histories !== undefined) {
    warnings.push({
      at: [index, "enable_db_agent_histories"],
      message: "'enable_db_agent_histories' has no effect: histories are always kept",
      hint: "take it out",
    });
  }
  return warnings;
}

const IDLE_PARAMS: Readonly<Record<string, { readonly message: string; readonly hint: string }>> = {
  memory: {
    message: "'memory' has no effect",
    hint: "take it out: an agent's memory of a task is always kept",
  },
  tool_format: {
    message: "'tool_format' has no effect inside agent_params",
    hint: "write it beside agent_params, as a key of the agent",
  },
};

function idleParams(agent: AgentEntry, at: readonly PathSegment[]): Finding[] {
  // A factory of the user's own may give these words a meaning.
  if (agent.factory === undefined || agent.factory.startsWith("module:")) return [];
  return Object.entries(IDLE_PARAMS).flatMap(([key, text]) =>
    Object.hasOwn(agent.agent_params, key) ? [{ at: [...at, "agent_params", key], ...text }] : [],
  );
}

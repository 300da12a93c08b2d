/** Parses a swarm file: returns swarms and warnings, or every problem with its position. */
import { messageOf } from "../../base/index.js";
import { type AgentOutline, checkSwarm, type SwarmOutline } from "./check.js";
import { type LocatedJson, mistakeIn, parseJsonText } from "./json-text.js";
import {
  badSwarmFile,
  formatPath,
  type PathSegment,
  type SwarmFileProblem,
  type UnplacedProblem,
} from "./problems.js";
import { type AgentEntry, type SwarmEntry, SwarmList } from "./schema.js";
import { zodFindings } from "./zod-findings.js";

/** A file with valid parts. The swarm as a whole is not checked yet. */
export interface ParsedSwarmFile {
  readonly source: string;
  readonly swarms: readonly SwarmEntry[];
  /** Paths in the findings begin with the index of the swarm. */
  readonly warnings: readonly UnplacedProblem[];
  /** Adds the path and the position in the text to a finding. */
  locate(finding: UnplacedProblem): SwarmFileProblem;
}

/** The swarms of a file, checked, with references as text. */
export interface SwarmFileContents {
  readonly swarms: readonly SwarmEntry[];
  readonly warnings: readonly SwarmFileProblem[];
}

/**
 * @param source the file name in messages.
 * @throws MailroomError `bad_swarm_file` with all problems of the form.
 */
export function parseSwarmFile(text: string, source = "swarms.json"): ParsedSwarmFile {
  const json = readJson(text, source);
  const { list, root, strays, single = false } = listIn(json.value);
  const locate = (finding: UnplacedProblem): SwarmFileProblem => locateIn(json, root, finding, single);
  const parsed = SwarmList.safeParse(list);
  const unknown = strays.map(
    (key): SwarmFileProblem => ({
      path: key,
      ...json.placeOf([key]),
      message: `unknown key '${key}'`,
      hint: "only '$schema' is allowed beside 'swarms'",
    }),
  );
  const twice = json.duplicateKeys.map((path) => ({
    at: single ? [0, ...path] : path.slice(root.length),
    message: `duplicate key '${String(path.at(-1))}'`,
    hint: "only the last one counts; remove one of them",
  }));
  if (!parsed.success || twice.length > 0 || unknown.length > 0) {
    const issues = parsed.success ? [] : zodFindings(SwarmList, parsed.error.issues).map(withAdvice);
    throw badSwarmFile(source, [...unknown, ...[...twice, ...issues].map(locate)]);
  }
  return { source, swarms: parsed.data, warnings: parsed.data.flatMap(idleKeys), locate };
}

/**
 * Checks a file without loading its references. Names of imported actions are unknown here, so a swarm with
 * `action_imports` is not checked for unknown actions.
 * @throws MailroomError `bad_swarm_file` with all problems.
 */
export function readSwarmFile(text: string, source = "swarms.json"): SwarmFileContents {
  const file = parseSwarmFile(text, source);
  const errors: UnplacedProblem[] = [...checkSwarmNames(file.swarms)];
  const warnings: UnplacedProblem[] = [...file.warnings];
  for (const [index, swarm] of file.swarms.entries()) {
    errors.push(...checkReferences(swarm).map((finding) => within([index], finding)));
    const found = checkSwarm(outlineOfEntry(swarm));
    errors.push(...found.errors.map((finding) => within([index], finding)));
    warnings.push(...found.warnings.map((finding) => within([index], finding)));
  }
  if (errors.length > 0) throw badSwarmFile(source, errors.map(file.locate));
  return { swarms: file.swarms, warnings: warnings.map(file.locate) };
}

/** @param imported the actions of `action_imports`; absent while they are unresolved. */
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

export function checkSwarmNames(swarms: readonly SwarmEntry[]): UnplacedProblem[] {
  return swarms.flatMap(({ name }, index) =>
    swarms.findIndex((other) => other.name === name) < index
      ? [
          {
            at: [index, "name"],
            message: `swarm '${name}' is defined twice`,
            hint: "rename one of them",
          },
        ]
      : [],
  );
}

/** Checks that local agents and actions have code, and remote agents have none. */
export function checkReferences(swarm: SwarmEntry): UnplacedProblem[] {
  const findings: UnplacedProblem[] = [];
  for (const [index, agent] of swarm.agents.entries()) {
    if (agent.remote && agent.factory !== undefined) {
      findings.push({
        at: ["agents", index, "factory"],
        message: `agent '${agent.name}' is remote, so it cannot have a factory`,
        hint: "remove either remote or factory",
      });
    }
    if (agent.remote && agent.speculate !== undefined) {
      findings.push({
        at: ["agents", index, "speculate"],
        message: `agent '${agent.name}' is remote, so it always gets durable mail`,
        hint: "remove speculate",
      });
    }
    if (!agent.remote && agent.factory === undefined) {
      findings.push({
        at: ["agents", index],
        message: `agent '${agent.name}' has no factory`,
        hint: 'add "factory": "module:./file.js#export", or set remote to true',
      });
    }
  }
  for (const [index, action] of swarm.actions.entries()) {
    if (action.function !== undefined || swarm.breakpoint_tools.includes(action.name)) continue;
    findings.push({
      at: ["actions", index],
      message: `action '${action.name}' has no function`,
      hint: 'add "function": "module:./file.js#export", or list it in breakpoint_tools',
    });
  }
  return findings;
}

export function within(prefix: readonly PathSegment[], finding: UnplacedProblem): UnplacedProblem {
  return { ...finding, at: [...prefix, ...finding.at] };
}

function readJson(text: string, source: string): LocatedJson {
  try {
    return parseJsonText(text);
  } catch (error) {
    const place = mistakeIn(error);
    if (place === undefined) throw error;
    const problem = { path: "", ...place, message: `not valid JSON: ${messageOf(error)}` };
    throw badSwarmFile(source, [problem], { cause: error });
  }
}

interface FoundList {
  readonly list: unknown;
  /** Path of the list in the text. */
  readonly root: readonly PathSegment[];
  /** Unexpected keys beside the list. */
  readonly strays: readonly string[];
  /** The text is one swarm, not a list. */
  readonly single?: boolean;
}

function listIn(value: unknown): FoundList {
  const isWrapper = typeof value === "object" && value !== null && !Array.isArray(value) && "swarms" in value;
  // One swarm by itself, as the reference's `from_swarm_json` takes it.
  const isSwarm = typeof value === "object" && value !== null && !Array.isArray(value) && "agents" in value;
  if (isSwarm && !isWrapper) return { list: [value], root: [], strays: [], single: true };
  if (!isWrapper) return { list: value, root: [], strays: [] };
  const strays = Object.keys(value).filter((key) => key !== "swarms" && key !== "$schema");
  return { list: value.swarms, root: ["swarms"], strays };
}

function locateIn(
  json: LocatedJson,
  root: readonly PathSegment[],
  finding: UnplacedProblem,
  single: boolean,
): SwarmFileProblem {
  const { at, ...rest } = finding;
  const inText = single ? at.slice(1) : [...root, ...at];
  return { path: formatPath(["swarms", ...at]), ...json.placeOf(inText), ...rest };
}

/** Keys that users expect from other tools. */
const ADVICE: Readonly<Record<string, string>> = {
  llm: "put parameters of the model into agent_params",
  system: "put parameters of the model into agent_params",
  model: "put parameters of the model into agent_params",
};

function withAdvice(finding: UnplacedProblem): UnplacedProblem {
  if (finding.at.length === 0)
    return { ...finding, hint: "a swarm file must be a list of swarms: [ { … } ]" };
  const key = finding.at.at(-1);
  const isAgentKey = finding.at.length === 4 && finding.at[1] === "agents";
  const advice = isAgentKey && typeof key === "string" ? ADVICE[key] : undefined;
  return advice === undefined || !finding.message.startsWith("unknown key")
    ? finding
    : { ...finding, hint: advice };
}

/** Keys of the reference implementation that have no effect: reported as warnings. */
function idleKeys(swarm: SwarmEntry, index: number): UnplacedProblem[] {
  const warnings = swarm.agents.flatMap((agent, position) => idleParams(agent, [index, "agents", position]));
  if (swarm.enable_db_agent_histories !== undefined) {
    warnings.push({
      at: [index, "enable_db_agent_histories"],
      message: "'enable_db_agent_histories' has no effect: histories are always stored",
      hint: "remove it",
    });
  }
  return warnings;
}

const IDLE_PARAMS: Readonly<Record<string, { readonly message: string; readonly hint: string }>> = {
  memory: {
    message: "'memory' has no effect",
    hint: "remove it: an agent's history of a task is always stored",
  },
  tool_format: {
    message: "'tool_format' has no effect inside agent_params",
    hint: "move it out of agent_params, to the agent",
  },
};

function idleParams(agent: AgentEntry, at: readonly PathSegment[]): UnplacedProblem[] {
  // The user's own factory may use these keys.
  if (agent.factory === undefined || agent.factory.startsWith("module:")) return [];
  return Object.entries(IDLE_PARAMS).flatMap(([key, text]) =>
    Object.hasOwn(agent.agent_params, key) ? [{ at: [...at, "agent_params", key], ...text }] : [],
  );
}

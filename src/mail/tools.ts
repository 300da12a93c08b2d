/** The MAIL tools offered to agents. */
import { MAIL_TOOL_NAMES, MAIL_TOOLS, type MailToolName, type Parameter } from "./tool-table.js";

/** JSON Schema of a tool's arguments. */
export type ParameterSchema = Readonly<Record<string, unknown>>;

/** A tool, independent of the model's provider. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly parameters: ParameterSchema;
  /** Whether `parameters` is in the providers' strict subset (all properties required, none additional). */
  readonly strict?: boolean;
}

/** The two forms of tools of model providers. */
export type ToolStyle = "completions" | "responses";

export interface CompletionsToolSpec {
  readonly type: "function";
  readonly function: Required<ToolDefinition>;
}

export interface ResponsesToolSpec extends Required<ToolDefinition> {
  readonly type: "function";
}

/** A tool in the form of a model provider. */
export type ToolSpec = CompletionsToolSpec | ResponsesToolSpec;

export interface ToolOptions {
  /** Addresses that the agent may write to. */
  readonly targets?: readonly string[];
  /** With other swarms, the targets cannot be listed in advance. */
  readonly enableInterswarm?: boolean;
  readonly excludeTools?: readonly string[];
  /** Default: `responses`, as in swarm files. */
  readonly style?: ToolStyle;
}

export interface SupervisorToolOptions extends ToolOptions {
  /** True unless given. */
  readonly canCompleteTasks?: boolean;
}

/** The properties that determine an agent's tools. */
export interface ToolHolder {
  readonly commTargets: readonly string[];
  readonly canCompleteTasks: boolean;
  readonly enableInterswarm: boolean;
  /** Whether it supervises others (interrupts, broadcasts). Default: whether it can complete tasks. */
  readonly supervisor?: boolean;
  readonly excludeTools?: readonly string[];
}

const BASIC_TOOLS: readonly MailToolName[] = [
  "send_request",
  "send_response",
  "acknowledge_broadcast",
  "ignore_broadcast",
  "await_message",
  "help",
];

/** Converts a tool to a provider's form. Also for actions, whose schema is unchanged. */
export function toolSpec(style: ToolStyle, tool: ToolDefinition): ToolSpec {
  const { name, description, parameters, strict = false } = tool;
  switch (style) {
    case "completions":
      return { type: "function", function: { name, description, parameters, strict } };
    case "responses":
      return { type: "function", name, description, parameters, strict };
  }
}

/** Defines one MAIL tool for an agent with the comm targets `targets`. */
export function mailTool(
  name: MailToolName,
  options: Pick<ToolOptions, "targets" | "enableInterswarm"> = {},
): Required<ToolDefinition> {
  const { description, parameters } = MAIL_TOOLS[name];
  const properties: Record<string, unknown> = {};
  for (const [key, parameter] of Object.entries(parameters)) {
    properties[key] = parameterSchema(key, parameter, options);
  }
  return {
    name,
    description,
    parameters: {
      type: "object",
      title: name,
      description,
      properties,
      // The providers' strict mode requires all properties; optional ones may be null.
      required: Object.keys(properties),
      additionalProperties: false,
    },
    strict: true,
  };
}

/**
 * Returns the names of an agent's MAIL tools: `task_complete` if and only if it can complete tasks (decision B15). An
 * agent without comm targets gets no mail tools, but can still complete a task.
 */
export function mailToolNamesFor(agent: ToolHolder): MailToolName[] {
  const supervisor = agent.supervisor ?? agent.canCompleteTasks;
  const hasTargets = agent.commTargets.length > 0;
  const granted = new Set<MailToolName>();
  if (hasTargets) for (const name of BASIC_TOOLS) granted.add(name);
  for (const name of supervisorToolNames({
    supervisor,
    hasTargets,
    enableInterswarm: agent.enableInterswarm,
    canCompleteTasks: agent.canCompleteTasks,
  })) {
    granted.add(name);
  }
  for (const name of MAIL_TOOL_NAMES) if (agent.excludeTools?.includes(name)) granted.delete(name);
  return MAIL_TOOL_NAMES.filter((name) => granted.has(name));
}

/** Returns the definitions of an agent's MAIL tools, for conversion with `toolSpec`. */
export function mailToolsFor(agent: ToolHolder): Required<ToolDefinition>[] {
  const options = { targets: agent.commTargets, enableInterswarm: agent.enableInterswarm };
  return mailToolNamesFor(agent).map((name) => mailTool(name, options));
}

/** The tools of every agent with comm targets. */
export function createMailTools(options: ToolOptions = {}): ToolSpec[] {
  return createTools(BASIC_TOOLS, options);
}

/** The additional tools of a supervisor. */
export function createSupervisorTools(options: SupervisorToolOptions = {}): ToolSpec[] {
  const names = supervisorToolNames({
    supervisor: true,
    hasTargets: (options.targets ?? []).length > 0,
    enableInterswarm: options.enableInterswarm ?? false,
    canCompleteTasks: options.canCompleteTasks ?? true,
  });
  return createTools(names, options);
}

/** Makes the tool `send_request`. */
export const createRequestTool = (options?: ToolOptions): ToolSpec => createTool("send_request", options);
/** Makes the tool `send_response`. */
export const createResponseTool = (options?: ToolOptions): ToolSpec => createTool("send_response", options);
/** Makes the tool `send_interrupt`. */
export const createInterruptTool = (options?: ToolOptions): ToolSpec => createTool("send_interrupt", options);
/** Makes the tool `send_broadcast`. */
export const createBroadcastTool = (options?: ToolOptions): ToolSpec => createTool("send_broadcast", options);
/** Makes the tool `task_complete`. */
export const createTaskCompleteTool = (options?: ToolOptions): ToolSpec =>
  createTool("task_complete", options);
/** Makes the tool `acknowledge_broadcast`. */
export const createAcknowledgeBroadcastTool = (options?: ToolOptions): ToolSpec =>
  createTool("acknowledge_broadcast", options);
/** Makes the tool `ignore_broadcast`. */
export const createIgnoreBroadcastTool = (options?: ToolOptions): ToolSpec =>
  createTool("ignore_broadcast", options);
/** Makes the tool `await_message`. */
export const createAwaitMessageTool = (options?: ToolOptions): ToolSpec =>
  createTool("await_message", options);
/** Makes the tool `help`. */
export const createHelpTool = (options?: ToolOptions): ToolSpec => createTool("help", options);
/** Makes the tool `send_interswarm_broadcast`. */
export const createInterswarmBroadcastTool = (options?: ToolOptions): ToolSpec =>
  createTool("send_interswarm_broadcast", options);
/** Makes the tool `discover_swarms`. */
export const createSwarmDiscoveryTool = (options?: ToolOptions): ToolSpec =>
  createTool("discover_swarms", options);

function createTool(name: MailToolName, options: ToolOptions = {}): ToolSpec {
  return toolSpec(options.style ?? "responses", mailTool(name, options));
}

function createTools(names: readonly MailToolName[], options: ToolOptions): ToolSpec[] {
  const excluded = options.excludeTools ?? [];
  return names.filter((name) => !excluded.includes(name)).map((name) => createTool(name, options));
}

function supervisorToolNames(rights: {
  readonly supervisor: boolean;
  readonly hasTargets: boolean;
  readonly enableInterswarm: boolean;
  readonly canCompleteTasks: boolean;
}): MailToolName[] {
  const names: MailToolName[] = [];
  if (rights.supervisor && rights.hasTargets) names.push("send_interrupt", "send_broadcast");
  if (rights.supervisor && rights.enableInterswarm)
    names.push("send_interswarm_broadcast", "discover_swarms");
  if (rights.canCompleteTasks) names.push("task_complete");
  return names;
}

function parameterSchema(
  name: string,
  parameter: Parameter,
  options: Pick<ToolOptions, "targets" | "enableInterswarm">,
): ParameterSchema {
  const title = name;
  const { description } = parameter;
  if (parameter.kind === "target") return targetSchema(title, description, options);
  const value = valueSchema(parameter.kind);
  if (parameter.optional !== true) return { title, description, ...value };
  return { title, description, anyOf: [value, { type: "null" }] };
}

function targetSchema(
  title: string,
  description: string,
  { targets = [], enableInterswarm = false }: Pick<ToolOptions, "targets" | "enableInterswarm">,
): ParameterSchema {
  if (enableInterswarm) {
    const known = targets.length > 0 ? ` You may write to: ${targets.join(", ")}.` : "";
    return {
      title,
      description: `${description} An agent of another swarm is written agent-name@swarm-name.${known}`,
      type: "string",
    };
  }
  // An empty enum is not a valid schema.
  if (targets.length === 0) return { title, description, type: "string" };
  return { title, description, type: "string", enum: [...new Set(targets)] };
}

function valueSchema(kind: Exclude<Parameter["kind"], "target">): ParameterSchema {
  switch (kind) {
    case "text":
      return { type: "string" };
    case "texts":
      return { type: "array", items: { type: "string" } };
    case "flag":
      return { type: "boolean" };
    case "tools":
      return { type: "array", items: { type: "string", enum: [...MAIL_TOOL_NAMES] } };
  }
}

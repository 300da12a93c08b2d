/**
 * The form of `swarms.json`. Types are inferred from it, files are parsed with it, and the schema for editors
 * (`schemas/swarms.schema.json`) is generated from it.
 */
import { z } from "zod";

const Names = z.array(z.string().min(1)).readonly();

export const ActionEntry = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, '_' or '-'")
      .meta({
        description: "The name for agents. Must be unique in the swarm and not the name of a MAIL tool.",
      }),
    description: z
      .string()
      .min(1)
      .meta({ description: "What it does and when to use it. Agents choose by this text." }),
    parameters: z.record(z.string(), z.unknown()).readonly().meta({
      description: "JSON Schema of the arguments. Agents see it unchanged; arguments are checked against it.",
    }),
    function: z.string().min(1).exactOptional().meta({
      description:
        "The code: `module:./file.js#export` or `mail:<built-in>`. May be omitted only for breakpoint tools.",
    }),
    idempotent: z
      .boolean()
      .default(false)
      .meta({ description: "Whether it may run again with the same call id after a crash." }),
    time_limit_ms: z
      .number()
      .positive()
      .exactOptional()
      .meta({ description: "Milliseconds after which the action is aborted." }),
  })
  .readonly()
  .meta({ description: "A function that agents can call." });
export type ActionEntry = z.infer<typeof ActionEntry>;

export const BudgetEntry = z
  .strictObject({
    max_cost: z.number().min(0).exactOptional().meta({ description: "In the currency of the prices." }),
    max_tokens: z.int().min(0).exactOptional().meta({ description: "Input and output tokens together." }),
    max_calls: z.int().min(0).exactOptional().meta({ description: "Model calls, including failed ones." }),
  })
  .readonly()
  .meta({ description: "Limits on what model calls use. At a limit the task pauses." });
export type BudgetEntry = z.infer<typeof BudgetEntry>;

export const AgentEntry = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .meta({ description: "Its address within the swarm: no '@', ':' or white space, and not `all`." }),
    description: z.string().exactOptional().meta({ description: "What it does." }),
    factory: z
      .string()
      .min(1)
      .exactOptional()
      .meta({
        description:
          "The code of the agent: `module:./file.js#export`, `mail:scripted`, `mail:agent`, `mail:supervisor`, " +
          "`mail:action-agent` or `mail:example/<name>`. Omitted for agents with `remote: true`.",
      }),
    remote: z.boolean().default(false).meta({
      description: "The agent runs in another process: its mail waits until that process fetches it.",
    }),
    speculate: z
      .boolean()
      .exactOptional()
      .meta({
        description:
          "Whether its turns may start on mail that is not yet durable, which a crash can undo. Default: true, " +
          "and false for model agents.",
      }),
    comm_targets: Names.meta({
      description: "Its comm targets: `name`, or `name@swarm` for an agent of another swarm.",
    }),
    agent_params: z.record(z.string(), z.unknown()).readonly().default({}).meta({
      description:
        "Parameters of the factory. Texts that begin with `url::` are fetched when the file is loaded.",
    }),
    enable_entrypoint: z.boolean().default(false).meta({ description: "Whether users may write to it." }),
    enable_interswarm: z
      .boolean()
      .default(false)
      .meta({ description: "Whether it may write to other swarms." }),
    can_complete_tasks: z
      .boolean()
      .default(false)
      .meta({ description: "Whether it may complete tasks (a supervisor)." }),
    tool_format: z
      .enum(["completions", "responses"])
      .default("responses")
      .meta({ description: "The form of tools and history for models." }),
    actions: Names.default([]).meta({ description: "Names of the swarm's actions that it may call." }),
    exclude_tools: Names.default([]).meta({ description: "MAIL tools that it does not get." }),
    budget: BudgetEntry.exactOptional().meta({
      description: "Limits on what its model calls use in one task. At a limit the task pauses.",
    }),
  })
  .readonly()
  .meta({ description: "One agent of the swarm." });
export type AgentEntry = z.infer<typeof AgentEntry>;

/** Syntax of an environment variable; concatenated so that it does not look like a template. */
const PLACEHOLDER = `\`$\{NAME}\``;

const McpCommon = {
  time_limit_ms: z
    .number()
    .positive()
    .exactOptional()
    .meta({ description: "Milliseconds after which a call is aborted." }),
  required: z
    .boolean()
    .default(true)
    .meta({ description: "Whether loading fails without it. Otherwise the swarm loads without its tools." }),
};

export const McpServerEntry = z
  .union([
    z
      .strictObject({
        command: z.string().min(1).meta({ description: "The server's program." }),
        args: Names.default([]).meta({ description: "Its arguments." }),
        env: z
          .record(z.string(), z.string())
          .readonly()
          .default({})
          .meta({
            description: `Its environment variables; ${PLACEHOLDER} in a value is replaced by one of the server's.`,
          }),
        cwd: z
          .string()
          .min(1)
          .exactOptional()
          .meta({ description: "Its working directory, relative to the swarm file." }),
        ...McpCommon,
      })
      .readonly(),
    z
      .strictObject({
        url: z.string().min(1).meta({ description: "Its URL (streamable HTTP)." }),
        headers: z
          .record(z.string(), z.string())
          .readonly()
          .default({})
          .meta({
            description: `Headers to send; ${PLACEHOLDER} in a value is replaced by an environment variable.`,
          }),
        ...McpCommon,
      })
      .readonly(),
  ])
  .meta({ description: "An MCP server whose tools become actions named `<server>__<tool>`." });
export type McpServerEntry = z.infer<typeof McpServerEntry>;

export const SwarmEntry = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .meta({ description: "The swarm's name: no '@', ':' or white space, and not `all`." }),
    version: z.string().min(1).meta({ description: "The version of this swarm, usually x.y.z." }),
    description: z.string().default("").meta({ description: "What the swarm is for." }),
    keywords: Names.default([]).meta({ description: "Keywords for discovery by other swarms." }),
    public: z.boolean().default(false).meta({ description: "Whether other swarms may see it." }),
    entrypoint: z.string().min(1).meta({ description: "The agent that receives users' mail." }),
    enable_interswarm: z
      .boolean()
      .default(false)
      .meta({ description: "Whether the swarm exchanges mail with other swarms." }),
    breakpoint_tools: Names.default([]).meta({
      description: "Actions or MAIL tools whose calls pause the task until a person supplies the result.",
    }),
    exclude_tools: Names.default([]).meta({ description: "MAIL tools that no agent gets." }),
    budget: BudgetEntry.exactOptional().meta({
      description:
        "Limits on what the model calls of one task use, in place of the server's `budgets.task`. At a limit the task " +
        "pauses.",
    }),
    agents: z.array(AgentEntry).min(1).readonly(),
    actions: z.array(ActionEntry).readonly().default([]),
    action_imports: Names.default([]).meta({
      description: "Actions defined elsewhere: `module:./file.js#export` or `mail:<built-in>`.",
    }),
    mcp_servers: z
      .record(
        z.string().regex(/^[A-Za-z0-9_-]{1,32}$/, "must be 1 to 32 letters, digits, '_' or '-'"),
        McpServerEntry,
      )
      .readonly()
      .default({})
      .meta({
        description:
          "MCP servers by name. An agent lists their tools among its actions: `<server>__<tool>`, or `<server>__*` for all.",
      }),
    enable_db_agent_histories: z
      .boolean()
      .exactOptional()
      .meta({ deprecated: true, description: "Has no effect: histories are always stored." }),
  })
  .readonly()
  .meta({ description: "A swarm: agents that write to each other, and their actions." });
export type SwarmEntry = z.infer<typeof SwarmEntry>;

export const SwarmList = z.array(SwarmEntry).min(1).readonly();

/** JSON Schema (2020-12) for editors. A file is a list of swarms, or an object with the list and `$schema`. */
export function swarmFileJsonSchema(): Readonly<Record<string, unknown>> {
  const parts = z.registry<{ id: string }>();
  parts.add(SwarmList, { id: "swarms" });
  parts.add(SwarmEntry, { id: "swarm" });
  parts.add(AgentEntry, { id: "agent" });
  parts.add(ActionEntry, { id: "action" });
  parts.add(BudgetEntry, { id: "budget" });
  parts.add(McpServerEntry, { id: "mcp_server" });
  const { schemas } = z.toJSONSchema(parts, {
    io: "input",
    target: "draft-2020-12",
    uri: (id) => `#/$defs/${id}`,
    // `readOnly` concerns only our types, so editors should not show it.
    override: ({ jsonSchema }) => void delete jsonSchema.readOnly,
  });
  const swarms = { $ref: "#/$defs/swarms" };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "urn:mailroom:swarm-file",
    title: "swarms.json",
    description: "Swarms of agents that exchange mail (MAIL), for Mailroom.",
    anyOf: [
      swarms,
      {
        type: "object",
        properties: { $schema: { type: "string" }, swarms },
        required: ["swarms"],
        additionalProperties: false,
      },
    ],
    $defs: Object.fromEntries(
      Object.entries(schemas).map(([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema]),
    ),
  };
}

/** An MCP server's tools, prompts and resources as actions. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { messageOf } from "../../base/index.js";
import type { Action } from "../../engine/index.js";
import { actionWith, defineAction } from "../define.js";
import { compileForeignSchema } from "../foreign-schema.js";
import { fromJsonSchema } from "../parameters.js";
import { promptText, resourceText, toolText } from "./results.js";
import { McpConnection, type McpServerOptions } from "./server.js";

/** A connected MCP server, whose tools are actions. */
export interface McpServer {
  readonly name: string;
  /** Its tools, and actions that list and read its prompts and resources, if any. */
  readonly actions: readonly Action[];
  close(): Promise<void>;
}

/** Tools of one server. Each is part of every prompt. */
const MAX_TOOLS = 500;

/** Characters of a tool's description. */
const MAX_DESCRIPTION = 4_000;

/**
 * Connects to a server and makes actions of its tools. A tool that cannot be used is left out with a warning. The list is
 * read once: agents keep the tools that they were given, and a change is reported. After a lost connection the next call
 * reconnects.
 * @throws MailroomError `mcp_server_unavailable` when the server cannot be reached
 * @example
 * const server = await connectMcpServer({ name: "files", command: "npx", args: ["@modelcontextprotocol/server-filesystem", "."] });
 * defineSwarm({ name: "desk", agents, actions: server.actions });
 */
export async function connectMcpServer(options: McpServerOptions): Promise<McpServer> {
  const connection = new McpConnection(options);
  try {
    return { name: options.name, actions: await actionsOf(connection), close: () => connection.close() };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function actionsOf(connection: McpConnection): Promise<Action[]> {
  const { tools, capabilities } = await connection.use(
    async (client, request) => {
      const has = client.getServerCapabilities() ?? {};
      const listed = has.tools === undefined ? { tools: [] } : await client.listTools(undefined, request);
      return { tools: listed.tools, capabilities: has };
    },
    { again: true, showOutput: true },
  );
  connection.onTools = (now) => reportChange(connection, tools, now);
  const own = [
    ...(capabilities.resources === undefined ? [] : resourceActions(connection)),
    ...(capabilities.prompts === undefined ? [] : promptActions(connection)),
  ];
  return [...(await toolActions(connection, tools, new Set(own.map(({ name }) => name)))), ...own];
}

interface McpTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly annotations?:
    | { readonly idempotentHint?: boolean | undefined; readonly readOnlyHint?: boolean | undefined }
    | undefined;
}

/** @param taken names of other actions of the server */
async function toolActions(
  connection: McpConnection,
  tools: readonly McpTool[],
  taken: Set<string>,
): Promise<Action[]> {
  const actions: Action[] = [];
  const known = new Set<string>();
  // Tools whose name need not be changed keep it, whatever the order of the list.
  const exact = new Set(tools.map(({ name }) => `${connection.name}__${name}`));
  for (const [index, tool] of tools.entries()) {
    if (index >= MAX_TOOLS) {
      connection.warn(`it has ${tools.length} tools; only the first ${MAX_TOOLS} can be used`);
      break;
    }
    if (known.has(tool.name)) {
      connection.warn(`it lists the tool ${shown(tool.name)} twice; the second one is left out`);
      continue;
    }
    known.add(tool.name);
    const plain = actionName(connection.name, tool.name);
    const isExact = plain === `${connection.name}__${tool.name}`;
    const collides = taken.has(plain) || (!isExact && exact.has(plain));
    const name = collides ? withHash(plain, tool.name) : plain;
    taken.add(name);
    try {
      actions.push(toolAction(connection, tool, name));
    } catch (error) {
      connection.warn(`the tool ${shown(tool.name)} is left out: ${messageOf(error)}`);
    }
    // Compiling a schema takes a millisecond or more, and a server may have hundreds.
    if (index % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
  }
  return actions;
}

function toolAction(connection: McpConnection, tool: McpTool, name: string): Action {
  const { description, title, annotations } = tool;
  const text = nonEmpty(description) ?? nonEmpty(title) ?? `The tool ${tool.name} of ${connection.name}.`;
  return actionWith(
    {
      name,
      description: text.length > MAX_DESCRIPTION ? `${text.slice(0, MAX_DESCRIPTION)}…` : text,
      parameters: tool.inputSchema,
      // The operator configured this server, so its annotations are trusted.
      idempotent: annotations?.idempotentHint === true || annotations?.readOnlyHint === true,
      timeLimit: connection.longestCall,
      run: (args, { signal }) =>
        connection.use(
          async (client, request) =>
            toolText(await client.callTool({ name: tool.name, arguments: { ...args } }, request)),
          { signal },
        ),
    },
    () => fromJsonSchema(name, tool.inputSchema, compileForeignSchema),
  );
}

function reportChange(connection: McpConnection, before: readonly McpTool[], now: readonly McpTool[]): void {
  const old = new Map(before.map((tool) => [tool.name, JSON.stringify(tool)]));
  const added = now.filter(({ name }) => !old.has(name));
  const changed = now.filter((tool) => old.has(tool.name) && old.get(tool.name) !== JSON.stringify(tool));
  const left = new Set(now.map(({ name }) => name));
  const removed = before.filter(({ name }) => !left.has(name));
  const parts = [
    ...(added.length === 0 ? [] : [`added ${namesOf(added)}`]),
    ...(changed.length === 0 ? [] : [`changed ${namesOf(changed)}`]),
    ...(removed.length === 0 ? [] : [`removed ${namesOf(removed)}`]),
  ];
  if (parts.length > 0)
    connection.warn(`its tools have changed (${parts.join(", ")}); load the swarm again to use them`);
}

function namesOf(tools: readonly McpTool[]): string {
  const names = tools.slice(0, 10).map(({ name }) => shown(name));
  return `${names.join(", ")}${tools.length > 10 ? `, and ${tools.length - 10} more` : ""}`;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

function resourceActions(connection: McpConnection): Action[] {
  const { name, timeLimit } = connection;
  return [
    defineAction({
      name: actionName(name, "list_resources"),
      description: `Lists the resources of ${name}, one 'uri name' per line.`,
      parameters: z.strictObject({}),
      idempotent: true,
      timeLimit,
      run: (_args, { signal }) =>
        connection.use(
          async (client, request) => {
            const { resources } = await client.listResources(undefined, request);
            return resources.map((resource) => `${resource.uri} ${resource.name}`).join("\n");
          },
          { signal, again: true },
        ),
    }),
    defineAction({
      name: actionName(name, "read_resource"),
      description: `Reads a resource of ${name}.`,
      parameters: z.strictObject({ uri: z.string().min(1).describe("Its URI, as listed") }),
      idempotent: true,
      timeLimit,
      run: ({ uri }, { signal }) =>
        connection.use(async (client, request) => resourceText(await client.readResource({ uri }, request)), {
          signal,
          again: true,
        }),
    }),
  ];
}

function promptActions(connection: McpConnection): Action[] {
  const { name, timeLimit } = connection;
  return [
    defineAction({
      name: actionName(name, "list_prompts"),
      description: `Lists the prompts of ${name} with their arguments.`,
      parameters: z.strictObject({}),
      idempotent: true,
      timeLimit,
      run: (_args, { signal }) =>
        connection.use(
          async (client, request) => {
            const { prompts } = await client.listPrompts(undefined, request);
            return prompts
              .map((prompt) => {
                const names = (prompt.arguments ?? []).map((argument) => argument.name).join(", ");
                return `${prompt.name}(${names}) ${prompt.description ?? ""}`.trim();
              })
              .join("\n");
          },
          { signal, again: true },
        ),
    }),
    defineAction({
      name: actionName(name, "get_prompt"),
      description: `Returns a prompt of ${name}.`,
      parameters: z.strictObject({
        prompt_name: z.string().min(1).describe("Its name, as listed"),
        arguments: z.record(z.string(), z.string()).default({}).describe("Its arguments"),
      }),
      idempotent: true,
      timeLimit,
      run: ({ prompt_name, arguments: args }, { signal }) =>
        connection.use(
          async (client, request) =>
            promptText(await client.getPrompt({ name: prompt_name, arguments: args }, request)),
          { signal, again: true },
        ),
    }),
  ];
}

/** `<server>__<tool>` as a name that every model accepts: other characters become `_`, long names are shortened. */
function actionName(server: string, tool: string): string {
  const name = `${server}__${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  return name.length <= 64 ? name : withHash(name, name);
}

function withHash(name: string, of: string): string {
  return `${name.slice(0, 55)}_${createHash("sha256").update(of).digest("hex").slice(0, 8)}`;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text;
}

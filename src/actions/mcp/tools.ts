/** An MCP server's tools, prompts and resources as actions. */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Action } from "../../engine/agent.js";
import { defineAction } from "../define.js";
import { promptText, resourceText, toolText } from "./results.js";
import { McpConnection, type McpServerOptions } from "./server.js";

export interface McpServer {
  readonly name: string;
  /** Its tools, and where it has prompts or resources, actions that list and read them. */
  readonly actions: readonly Action[];
  close(): Promise<void>;
}

/**
 * Connects to a server and makes actions of what it offers. The list is taken once; a server that goes away later is
 * connected to again by the next call.
 * @throws McpServerError when it cannot be reached now
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
    { again: true },
  );
  return [
    ...tools.map((tool) => toolAction(connection, tool)),
    ...(capabilities.resources === undefined ? [] : resourceActions(connection)),
    ...(capabilities.prompts === undefined ? [] : promptActions(connection)),
  ];
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

function toolAction(connection: McpConnection, tool: McpTool): Action {
  const { description, title, annotations } = tool;
  return defineAction({
    name: actionName(connection.name, tool.name),
    description: nonEmpty(description) ?? nonEmpty(title) ?? `The tool ${tool.name} of ${connection.name}.`,
    parameters: tool.inputSchema,
    // Whoever declared the server vouches for what it says about its tools.
    idempotent: annotations?.idempotentHint === true || annotations?.readOnlyHint === true,
    timeLimit: connection.timeLimit,
    run: (args, { signal }) =>
      connection.use(
        async (client, request) =>
          toolText(await client.callTool({ name: tool.name, arguments: { ...args } }, request)),
        { signal },
      ),
  });
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

/** `<server>__<tool>`, within what every model accepts as a name: odd characters become `_`, long names are cut. */
export function actionName(server: string, tool: string): string {
  const name = `${server}__${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (name.length <= 64) return name;
  return `${name.slice(0, 55)}_${createHash("sha256").update(name).digest("hex").slice(0, 8)}`;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text;
}

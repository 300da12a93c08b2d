/** The seven `mcp_*` actions of REF-21: call any MCP server by URL, behind the outbound guard. */
import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { Action } from "../../engine/index.js";
import { defineAction } from "../define.js";
import { type OutboundOptions, outbound } from "../outbound.js";
import { promptText, resourceText, toolText } from "./results.js";
import { McpConnection, type McpRequest } from "./server.js";

export type McpActionName =
  | "mcp_ping"
  | "mcp_list_tools"
  | "mcp_list_prompts"
  | "mcp_list_resources"
  | "mcp_call_tool"
  | "mcp_get_prompt"
  | "mcp_read_resource";

const server_url = z.string().min(1).max(2_048).describe("The URL of the MCP server, https://…");

/**
 * Makes actions that list and call the tools of MCP servers whose URL the agent gives, behind the outbound guard.
 * @example
 * const { mcp_list_tools, mcp_call_tool } = mcpActions();
 */
export function mcpActions(options: OutboundOptions = {}): Readonly<Record<McpActionName, Action>> {
  const { client: http, timeLimit } = outbound(options);
  const visit = async <T>(
    url: string,
    signal: AbortSignal,
    work: (client: Client, request: McpRequest) => Promise<T>,
  ): Promise<T> => {
    const connection = new McpConnection({ name: url, url, client: http, timeLimit });
    try {
      return await connection.use(work, { signal });
    } finally {
      await connection.close();
    }
  };
  const look = (
    name: McpActionName,
    description: string,
    work: (client: Client, request: McpRequest) => Promise<string>,
  ): Action =>
    defineAction({
      name,
      description,
      parameters: z.strictObject({ server_url }),
      idempotent: true,
      run: ({ server_url: url }, { signal }) => visit(url, signal, work),
    });
  return {
    mcp_ping: look(
      "mcp_ping",
      "Returns 'pong' if an MCP server answers at the URL.",
      async (client, request) => {
        await (client.getProtocolEra() === "modern" ? client.discover(request) : client.ping(request));
        return "pong";
      },
    ),
    mcp_list_tools: look(
      "mcp_list_tools",
      "Lists the tools of an MCP server as JSON.",
      async (client, request) => {
        const { tools } = await client.listTools(undefined, request);
        return JSON.stringify(
          tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
        );
      },
    ),
    mcp_list_prompts: look(
      "mcp_list_prompts",
      "Lists the prompts of an MCP server as JSON.",
      async (client, request) => {
        const { prompts } = await client.listPrompts(undefined, request);
        return JSON.stringify(
          prompts.map(({ name, description, arguments: args }) => ({ name, description, arguments: args })),
        );
      },
    ),
    mcp_list_resources: look(
      "mcp_list_resources",
      "Lists the resources of an MCP server as JSON.",
      async (client, request) => {
        const { resources } = await client.listResources(undefined, request);
        return JSON.stringify(
          resources.map(({ uri, name, description, mimeType }) => ({ uri, name, description, mimeType })),
        );
      },
    ),
    mcp_call_tool: defineAction({
      name: "mcp_call_tool",
      description: "Calls a tool of an MCP server.",
      parameters: z.strictObject({
        server_url,
        tool_name: z.string().min(1).describe("Its name, as listed"),
        tool_input: z.record(z.string(), z.json()).describe("Its arguments"),
      }),
      run: ({ server_url: url, tool_name, tool_input }, { signal }) =>
        visit(url, signal, async (client, request) =>
          toolText(await client.callTool({ name: tool_name, arguments: tool_input }, request)),
        ),
    }),
    mcp_get_prompt: defineAction({
      name: "mcp_get_prompt",
      description: "Returns a prompt of an MCP server.",
      parameters: z.strictObject({
        server_url,
        prompt_name: z.string().min(1).describe("Its name, as listed"),
        arguments: z.record(z.string(), z.string()).default({}).describe("Its arguments, if it has any"),
      }),
      idempotent: true,
      run: ({ server_url: url, prompt_name, arguments: args }, { signal }) =>
        visit(url, signal, async (client, request) =>
          promptText(await client.getPrompt({ name: prompt_name, arguments: args }, request)),
        ),
    }),
    mcp_read_resource: defineAction({
      name: "mcp_read_resource",
      description: "Reads a resource of an MCP server.",
      parameters: z.strictObject({
        server_url,
        resource_uri: z.string().min(1).describe("Its URI, as listed"),
      }),
      idempotent: true,
      run: ({ server_url: url, resource_uri: uri }, { signal }) =>
        visit(url, signal, async (client, request) =>
          resourceText(await client.readResource({ uri }, request)),
        ),
    }),
  };
}

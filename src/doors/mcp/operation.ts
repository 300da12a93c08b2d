/** How HTTP carries MCP, for the OpenAPI document. The protocol describes itself. */
import { z } from "zod";
import { JsonRpcRequest, JsonRpcResponse, type MountedOperation, NO_INPUT } from "../../extension/index.js";

const MCP = { name: "Model Context Protocol", url: "https://modelcontextprotocol.io/specification" };

export const MCP_OPERATION: MountedOperation = {
  ...NO_INPUT,
  id: "callMcp",
  method: "POST",
  tag: "agents",
  summary: "MCP over streamable HTTP",
  description:
    "Accept both application/json and text/event-stream: a response may be either. No sessions are kept, so there is nothing to GET or DELETE.",
  protocol: MCP,
  headers: z.object({
    "MCP-Protocol-Version": z
      .string()
      .exactOptional()
      .meta({ description: "The version agreed on during initialization." }),
  }),
  body: JsonRpcRequest,
  answers: {
    200: {
      description: "The response, alone or as the last event of a stream (`event: message`).",
      schema: JsonRpcResponse,
      contentType: "text/event-stream",
    },
    202: { description: "The notification was accepted." },
    400: {
      description: "Not a request of this protocol, or of an unknown version.",
      schema: JsonRpcResponse,
    },
    406: { description: "`Accept` lacks one of the two.", schema: JsonRpcResponse },
    415: { description: "No body.", schema: JsonRpcResponse },
  },
};

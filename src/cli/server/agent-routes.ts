/** What the OpenAPI document says about MCP and A2A: how HTTP carries them. The protocols describe themselves. */
import { z } from "zod";
import { type MountedOperation, NOTHING, type RawRoute } from "../../http/index.js";

const MCP = { name: "Model Context Protocol", url: "https://modelcontextprotocol.io/specification" };
const A2A = { name: "Agent2Agent Protocol", url: "https://a2a-protocol.org/latest/specification" };

const JsonRpcRequest = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    id: z
      .union([z.string(), z.number()])
      .exactOptional()
      .meta({ description: "A notification has none, and gets no answer." }),
    method: z.string(),
    params: z.record(z.string(), z.unknown()).exactOptional(),
  })
  .meta({ id: "JsonRpcRequest", description: "A request or a notification of JSON-RPC 2.0." });

const JsonRpcResponse = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    id: z.union([z.string(), z.number(), z.null()]).exactOptional(),
    result: z.unknown().exactOptional(),
    error: z
      .looseObject({ code: z.int(), message: z.string(), data: z.unknown().exactOptional() })
      .exactOptional(),
  })
  .meta({ id: "JsonRpcResponse", description: "A response of JSON-RPC 2.0: a result or an error." });

const AgentCard = z
  .looseObject({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    supportedInterfaces: z.array(
      z.looseObject({ url: z.string(), protocolBinding: z.string(), protocolVersion: z.string() }),
    ),
  })
  .meta({ id: "AgentCard", description: "What A2A's specification says a card holds." });

export const MCP_OPERATION: MountedOperation = {
  ...NOTHING,
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
      .meta({ description: "As agreed on when the client introduced itself." }),
  }),
  body: JsonRpcRequest,
  answers: {
    200: {
      description: "The response, alone or as the last event of a stream (`event: message`).",
      schema: JsonRpcResponse,
      contentType: "text/event-stream",
    },
    202: { description: "A notification was taken." },
    400: {
      description: "Not a request of this protocol, or of no version known here.",
      schema: JsonRpcResponse,
    },
    406: { description: "`Accept` lacks one of the two.", schema: JsonRpcResponse },
    415: { description: "There is no body.", schema: JsonRpcResponse },
  },
};

export const A2A_OPERATION: MountedOperation = {
  ...NOTHING,
  id: "callA2a",
  method: "POST",
  tag: "agents",
  summary: "A2A in its JSON-RPC form",
  description:
    "`/.well-known/agent-card.json` describes the agent. Refusals of the protocol are answered with 200.",
  protocol: A2A,
  headers: z.object({
    "A2A-Version": z
      .string()
      .exactOptional()
      .meta({ description: "`1.0`. Without it A2A takes 0.3 to be meant, which is refused." }),
    "A2A-Extensions": z.string().exactOptional(),
  }),
  body: JsonRpcRequest,
  answers: {
    200: {
      description: "The response; of streaming methods a stream of them.",
      schema: JsonRpcResponse,
      contentType: "text/event-stream",
    },
  },
};

export const CARD_DESCRIPTION = {
  ...NOTHING,
  id: "getAgentCard",
  tag: "agents",
  summary: "The agent card of A2A",
  protocol: A2A,
  answers: { 200: { description: "The card.", schema: AgentCard } },
  errors: ["not_found"],
} as const satisfies Partial<RawRoute>;

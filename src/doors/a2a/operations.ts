/** How HTTP carries A2A, for the OpenAPI document. The protocol describes itself. */
import { z } from "zod";
import {
  JsonRpcRequest,
  JsonRpcResponse,
  type MountedOperation,
  NO_INPUT,
  type RawRoute,
} from "../../extension/index.js";

const A2A = { name: "Agent2Agent Protocol", url: "https://a2a-protocol.org/latest/specification" };

const AgentCard = z
  .looseObject({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    supportedInterfaces: z.array(
      z.looseObject({ url: z.string(), protocolBinding: z.string(), protocolVersion: z.string() }),
    ),
  })
  .meta({ id: "AgentCard", description: "The agent card of A2A's specification." });

export const A2A_OPERATION: MountedOperation = {
  ...NO_INPUT,
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
      .meta({ description: "`1.0`. If it is absent, A2A assumes 0.3, which is rejected." }),
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
  ...NO_INPUT,
  id: "getAgentCard",
  tag: "agents",
  summary: "Return the agent card of A2A",
  protocol: A2A,
  answers: { 200: { description: "The card.", schema: AgentCard } },
  errors: ["not_found"],
} as const satisfies Partial<RawRoute>;

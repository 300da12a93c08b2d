/** JSON-RPC 2.0 in the OpenAPI document. */
import { z } from "zod";

export const JsonRpcRequest = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    id: z
      .union([z.string(), z.number()])
      .exactOptional()
      .meta({ description: "Absent in a notification, which gets no response." }),
    method: z.string(),
    params: z.record(z.string(), z.unknown()).exactOptional(),
  })
  .meta({ id: "JsonRpcRequest", description: "A request or a notification of JSON-RPC 2.0." });

export const JsonRpcResponse = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    id: z.union([z.string(), z.number(), z.null()]).exactOptional(),
    result: z.unknown().exactOptional(),
    error: z
      .looseObject({ code: z.int(), message: z.string(), data: z.unknown().exactOptional() })
      .exactOptional(),
  })
  .meta({ id: "JsonRpcResponse", description: "A response of JSON-RPC 2.0: a result or an error." });

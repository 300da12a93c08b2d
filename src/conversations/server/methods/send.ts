import { z } from "zod";
import { parseParams } from "../../domain/params.js";
import { addressSchema } from "../addresses.js";
import type { MethodTable } from "../methods.js";
import { isRecord } from "../rpc.js";
import { withSession } from "./with-session.js";

const sendParams = z.object({
  to: addressSchema,
  payload: z.unknown().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
});

export const sendMethods: MethodTable = {
  "map/send": withSession(async ({ server, session, params = {} }) => {
    const { to } = parseParams(sendParams, params);
    // What is passed on is what came in, not what the schema made of it.
    const sent = {
      to: params.to,
      ...(params.payload !== undefined && { payload: params.payload }),
      ...(isRecord(params.meta) && { meta: params.meta }),
    };
    return (await server.remoteAgents?.send(session, to, sent)) ?? server.messages.send(session, to, sent);
  }),
};

import { z } from "zod";
import { isRecord } from "../../../base/index.js";
import { parseParams } from "../../../conversations/index.js";
import { addressSchema } from "../addresses.js";
import { type MethodTable, withSession } from "../method-call.js";

const sendParams = z.object({
  to: addressSchema,
  payload: z.unknown().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
});

export const sendMethods: MethodTable = {
  "map/send": withSession(async ({ context, session, params = {} }) => {
    const { to } = parseParams(sendParams, params);
    // Forward the request as it was received, not as the schema parsed it.
    const sent = {
      to: params.to,
      ...(params.payload !== undefined && { payload: params.payload }),
      ...(isRecord(params.meta) && { meta: params.meta }),
    };
    return (await context.remoteAgents?.send(session, to, sent)) ?? context.messages.send(session, to, sent);
  }),
};

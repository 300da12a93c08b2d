/** `mailroom/answer`, `mailroom/fail` and `mailroom/release`: how an agent in another process answers its mail (decision F5). */
import { z } from "zod";
import { MapError, parseParams } from "../../../conversations/index.js";
import type { TurnResult } from "../../../engine/index.js";
import { type MethodTable, type SessionCall, withSession } from "../method-call.js";
import type { RemoteAgents } from "../remote-agents/remote-agents.js";

const lentParams = {
  messageId: z.string().min(1),
  attempt: z.int().min(1),
  /** Needed only if two tasks have a message with this id. */
  conversationId: z.string().optional(),
};

const answerParams = z.object({
  ...lentParams,
  calls: z
    .array(
      z.object({
        id: z.string().min(1).max(256).optional(),
        name: z.string().min(1).max(256),
        args: z.record(z.string(), z.unknown()).optional(),
      }),
    )
    .max(100)
    .optional(),
  /** Without calls: the reply to the sender. */
  text: z.string().optional(),
});

const failParams = z.object({ ...lentParams, reason: z.string().min(1).max(10_000) });
const releaseParams = z.object(lentParams);

export const remoteAgentMethods: MethodTable = {
  "mailroom/answer": withSession(async (call) => {
    const { calls = [], text, ...named } = parseParams(answerParams, call.params);
    const { ids } = call.context;
    const answer: TurnResult = {
      calls: calls.map(({ id, name, args = {} }) => ({ id: id ?? ids.uuid(), name, args })),
      ...(text !== undefined && { text }),
    };
    await remoteAgentsOf(call).answer(call.session, named, answer);
    return { accepted: true };
  }),

  "mailroom/fail": withSession(async (call) => {
    const { reason, ...named } = parseParams(failParams, call.params);
    await remoteAgentsOf(call).fail(call.session, named, reason);
    return { accepted: true };
  }),

  "mailroom/release": withSession(async (call) => {
    await remoteAgentsOf(call).release(call.session, parseParams(releaseParams, call.params));
    return { released: true };
  }),
};

/** @throws MapError METHOD_NOT_FOUND */
function remoteAgentsOf({ context: { remoteAgents } }: SessionCall): RemoteAgents {
  if (remoteAgents === undefined) throw new MapError("METHOD_NOT_FOUND");
  return remoteAgents;
}

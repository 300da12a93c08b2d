/** The thirteen `mail/*` methods: parse, name the caller, hand over (map-mail 3.7). */
import type { z } from "zod";
import type { Conversations } from "../../book/conversations.js";
import { denied, MapError } from "../../domain/errors.js";
import {
  closeParams,
  createParams,
  getParams,
  inviteParams,
  joinParams,
  leaveParams,
  listParams,
  parseParams,
  replayParams,
  summaryParams,
  threadCreateParams,
  threadListParams,
  turnParams,
  turnsListParams,
} from "../../domain/params.js";
import type { Caller } from "../../domain/types.js";
import type { Handler, MethodTable } from "../methods.js";
import type { Session } from "../session.js";
import { withSession } from "./with-session.js";

type Meta = { readonly _meta?: { readonly actAs?: string | undefined } | undefined };

function mailMethod<Schema extends z.ZodType<Meta>>(
  schema: Schema,
  run: (conversations: Conversations, caller: Caller, params: z.infer<Schema>) => Promise<object>,
): Handler {
  return withSession(({ server, session, params }) => {
    const { conversations } = server;
    if (conversations === undefined) throw new MapError("MAIL_NOT_ENABLED");
    const parsed = parseParams(schema, params);
    return run(conversations, callerOf(session, parsed._meta?.actAs), parsed);
  });
}

/** Whoever names one of its ids acts as that one alone. @throws MapError MAIL_PERMISSION_DENIED */
function callerOf(session: Session, actAs: string | undefined): Caller {
  if (actAs === undefined) return session.caller;
  if (!session.owns(actAs)) throw denied(`${actAs} is not an id of this connection`);
  return { ...session.caller, acting: actAs, identities: new Set([actAs]) };
}

export const mailMethods: MethodTable = {
  "mail/create": mailMethod(createParams, (mail, caller, params) => mail.create(caller, params)),
  "mail/get": mailMethod(getParams, (mail, caller, params) => mail.get(caller, params)),
  "mail/list": mailMethod(listParams, (mail, caller, params) => mail.list(caller, params)),
  "mail/close": mailMethod(closeParams, (mail, caller, params) => mail.close(caller, params)),
  "mail/join": mailMethod(joinParams, (mail, caller, params) => mail.join(caller, params)),
  "mail/leave": mailMethod(leaveParams, (mail, caller, params) => mail.leave(caller, params)),
  "mail/invite": mailMethod(inviteParams, (mail, caller, params) => mail.invite(caller, params)),
  "mail/turn": mailMethod(turnParams, (mail, caller, params) => mail.turn(caller, params)),
  "mail/turns/list": mailMethod(turnsListParams, (mail, caller, params) => mail.listTurns(caller, params)),
  "mail/thread/create": mailMethod(threadCreateParams, (mail, caller, params) =>
    mail.createThread(caller, params),
  ),
  "mail/thread/list": mailMethod(threadListParams, (mail, caller, params) =>
    mail.listThreads(caller, params),
  ),
  "mail/summary": mailMethod(summaryParams, (mail, caller, params) => mail.summary(caller, params)),
  "mail/replay": mailMethod(replayParams, (mail, caller, params) => mail.replay(caller, params)),
};

/** The thirteen `mail/*` methods: parse, name the caller, hand over (map-mail 3.7). */
import type { z } from "zod";
import { type Conversations, cursorOf, parseCursor } from "../../book/conversations.js";
import { denied, MapError } from "../../domain/errors.js";
import {
  closeParams,
  createParams,
  DEFAULT_PAGE,
  getParams,
  inviteParams,
  joinParams,
  type ListParams,
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
import type { TaskBook } from "../../tasks/book.js";
import type { Handler, MethodTable } from "../methods.js";
import type { Session } from "../session.js";
import { withSession } from "./with-session.js";

type Meta = { readonly _meta?: { readonly actAs?: string | undefined } | undefined };

function mailMethod<Schema extends z.ZodType<Meta>>(
  schema: Schema,
  run: (books: Books, caller: Caller, params: z.infer<Schema>) => Promise<object>,
): Handler {
  return withSession(({ server, session, params }) => {
    const { conversations, tasks } = server;
    if (conversations === undefined) throw new MapError("MAIL_NOT_ENABLED");
    const parsed = parseParams(schema, params);
    return run({ conversations, tasks }, callerOf(session, parsed._meta?.actAs), parsed);
  });
}

/** Where conversations are kept: those of their own, and those that are tasks (decisions F4). */
interface Books {
  readonly conversations: Conversations;
  readonly tasks: TaskBook | undefined;
}

/** A method on one conversation, which is of the one kind or the other. */
function onConversation<Schema extends z.ZodType<Meta & { readonly conversationId: string }>>(
  schema: Schema,
  native: (book: Conversations, caller: Caller, params: z.infer<Schema>) => Promise<object>,
  task: (book: TaskBook, caller: Caller, params: z.infer<Schema>) => Promise<object> = (
    book,
    caller,
    params,
  ) => book.refuse(caller, params.conversationId),
): Handler {
  return mailMethod(schema, async ({ conversations, tasks }, caller, params) => {
    const { conversationId } = params;
    if (tasks === undefined || conversations.isLoaded(conversationId)) {
      return native(conversations, caller, params);
    }
    const isTask = (await tasks.journalOf(conversationId)) !== undefined;
    return isTask ? task(tasks, caller, params) : native(conversations, caller, params);
  });
}

/** Whoever names one of its ids acts as that one alone. @throws MapError MAIL_PERMISSION_DENIED */
function callerOf(session: Session, actAs: string | undefined): Caller {
  if (actAs === undefined) return session.caller;
  if (!session.owns(actAs)) throw denied(`${actAs} is not an id of this connection`);
  const { person, ...caller } = session.caller;
  return {
    ...caller,
    acting: actAs,
    identities: new Set([actAs]),
    ...(person !== undefined && actAs === session.participantId && { person }),
  };
}

export const mailMethods: MethodTable = {
  "mail/create": mailMethod(createParams, ({ conversations }, caller, params) =>
    conversations.create(caller, params),
  ),
  "mail/list": mailMethod(listParams, listAll),
  "mail/get": onConversation(
    getParams,
    (mail, caller, params) => mail.get(caller, params),
    (tasks, caller, params) => tasks.get(caller, params),
  ),
  "mail/close": onConversation(
    closeParams,
    (mail, caller, params) => mail.close(caller, params),
    (tasks, caller, params) => tasks.close(caller, params),
  ),
  "mail/join": onConversation(joinParams, (mail, caller, params) => mail.join(caller, params)),
  "mail/leave": onConversation(leaveParams, (mail, caller, params) => mail.leave(caller, params)),
  "mail/invite": onConversation(inviteParams, (mail, caller, params) => mail.invite(caller, params)),
  "mail/turn": onConversation(
    turnParams,
    (mail, caller, params) => mail.turn(caller, params),
    (tasks, caller, params) => tasks.turn(caller, params),
  ),
  "mail/turns/list": onConversation(
    turnsListParams,
    (mail, caller, params) => mail.listTurns(caller, params),
    (tasks, caller, params) => tasks.listTurns(caller, params),
  ),
  "mail/thread/create": onConversation(threadCreateParams, (mail, caller, params) =>
    mail.createThread(caller, params),
  ),
  "mail/thread/list": onConversation(threadListParams, (mail, caller, params) =>
    mail.listThreads(caller, params),
  ),
  "mail/summary": onConversation(
    summaryParams,
    (mail, caller, params) => mail.summary(caller, params),
    (tasks, caller, params) => tasks.summary(caller, params),
  ),
  "mail/replay": onConversation(
    replayParams,
    (mail, caller, params) => mail.replay(caller, params),
    (tasks, caller, params) => tasks.replay(caller, params),
  ),
};

/** Both kinds in one list: ids are in the order of creation, whichever kind they are of. */
async function listAll({ conversations, tasks }: Books, caller: Caller, params: ListParams): Promise<object> {
  const native = await conversations.list(caller, params);
  if (tasks === undefined) return native;
  const { filter = {}, limit = DEFAULT_PAGE, cursor } = params;
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  const ofTasks = await tasks.list(caller, filter, { after, limit: limit + 1 });
  const all = [...native.conversations, ...ofTasks].sort((a, b) => (a.id < b.id ? -1 : 1));
  const page = all.slice(0, limit);
  const last = page.at(-1);
  const hasMore = native.hasMore || all.length > limit;
  return {
    conversations: page,
    hasMore,
    ...(hasMore && last !== undefined && { nextCursor: cursorOf(last.id) }),
  };
}

/** The thirteen `mail/*` methods: parse, name the caller, hand over (map-mail 3.7). */
import type { z } from "zod";
import type { Book } from "../../book/book.js";
import type { Conversations } from "../../book/conversations.js";
import { cursorOf, parseCursor } from "../../book/cursor.js";
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
  ask: (book: Book, caller: Caller, params: z.infer<Schema>) => Promise<object>,
): Handler {
  return mailMethod(schema, ({ conversations, tasks }, caller, params) => {
    const { conversationId } = params;
    if (tasks === undefined || conversations.isLoaded(conversationId)) {
      return ask(conversations, caller, params);
    }
    return tasks
      .journalOf(conversationId)
      .then((journal) => ask(journal === undefined ? conversations : tasks, caller, params));
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
  "mail/create": mailMethod(createParams, ({ conversations }, ...call) => conversations.create(...call)),
  // A filter that hardly anything fits looks at all there is.
  "mail/list": (call) => call.connection.scan(async () => list(call)),
  "mail/get": onConversation(getParams, (book, ...call) => book.get(...call)),
  "mail/close": onConversation(closeParams, (book, ...call) => book.close(...call)),
  "mail/join": onConversation(joinParams, (book, ...call) => book.join(...call)),
  "mail/leave": onConversation(leaveParams, (book, ...call) => book.leave(...call)),
  "mail/invite": onConversation(inviteParams, (book, ...call) => book.invite(...call)),
  "mail/turn": onConversation(turnParams, (book, ...call) => book.turn(...call)),
  "mail/turns/list": onConversation(turnsListParams, (book, ...call) => book.listTurns(...call)),
  "mail/thread/create": onConversation(threadCreateParams, (book, ...call) => book.createThread(...call)),
  "mail/thread/list": onConversation(threadListParams, (book, ...call) => book.listThreads(...call)),
  "mail/summary": onConversation(summaryParams, (book, ...call) => book.summary(...call)),
  "mail/replay": onConversation(replayParams, (book, ...call) => book.replay(...call)),
};

const list = mailMethod(listParams, listAll);

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

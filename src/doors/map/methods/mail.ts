/** The thirteen `mail/*` methods ([MAP-METH-01] to [MAP-METH-13]): parse, identify the caller, delegate. */
import type { z } from "zod";
import {
  type Actor,
  type ConversationOperations,
  type ConversationPage,
  type ConversationService,
  closeParams,
  createParams,
  cursorOf,
  DEFAULT_PAGE,
  denied,
  getParams,
  inviteParams,
  joinParams,
  type ListParams,
  leaveParams,
  listParams,
  MapError,
  parseCursor,
  parseParams,
  replayParams,
  summaryParams,
  type TaskConversations,
  threadCreateParams,
  threadListParams,
  turnParams,
  turnsListParams,
} from "../../../conversations/index.js";
import { listing, type MethodHandler, type MethodTable, reading, withSession } from "../method-call.js";
import type { Session } from "../session.js";

type Meta = { readonly _meta?: { readonly actAs?: string | undefined } | undefined };

export function mailMethod<Schema extends z.ZodType<Meta>>(
  schema: Schema,
  run: (kinds: ConversationKinds, actor: Actor, params: z.infer<Schema>) => Promise<object>,
): MethodHandler {
  return withSession(({ context, session, params }) => {
    const { conversations, tasks } = context;
    if (conversations === undefined) throw new MapError("MAIL_NOT_ENABLED");
    const parsed = parseParams(schema, params);
    return run({ conversations, tasks }, actorOf(session, parsed._meta?.actAs), parsed);
  });
}

/** The two kinds of conversations: native ones and tasks (decision F4). */
export interface ConversationKinds {
  readonly conversations: ConversationService;
  readonly tasks: TaskConversations | undefined;
}

/** A method on one conversation of either kind. */
export function onConversation<Schema extends z.ZodType<Meta & { readonly conversationId: string }>>(
  schema: Schema,
  ask: (operations: ConversationOperations, actor: Actor, params: z.infer<Schema>) => Promise<object>,
): MethodHandler {
  return mailMethod(schema, ({ conversations, tasks }, actor, params) => {
    const { conversationId } = params;
    // At once if possible, so that requests that are sent together keep their order.
    if (tasks === undefined || conversations.isLoaded(conversationId)) {
      return ask(conversations, actor, params);
    }
    return operationsFor({ conversations, tasks }, conversationId).then((operations) =>
      ask(operations, actor, params),
    );
  });
}

/** Who answers for a conversation: native ones, or tasks. */
export async function operationsFor(
  { conversations, tasks }: ConversationKinds,
  conversationId: string,
): Promise<ConversationOperations> {
  if (tasks === undefined || conversations.isLoaded(conversationId)) return conversations;
  return (await tasks.journalOf(conversationId)) === undefined ? conversations : tasks;
}

/** With `actAs`, the actor has that id only. @throws MapError MAIL_PERMISSION_DENIED */
function actorOf(session: Session, actAs: string | undefined): Actor {
  if (actAs === undefined) return session.actor;
  if (!session.owns(actAs)) throw denied(`${actAs} is not an id of this connection`);
  const { instance, ...actor } = session.actor;
  return {
    ...actor,
    acting: actAs,
    identities: new Set([actAs]),
    ...(instance !== undefined && actAs === session.participantId && { instance }),
  };
}

export const mailMethods: MethodTable = {
  "mail/create": mailMethod(createParams, ({ conversations }, ...call) => conversations.create(...call)),
  // A selective filter may scan everything.
  "mail/list": (call) => call.connection.scan(async () => list(call), "long"),
  "mail/get": reading(onConversation(getParams, (operations, ...call) => operations.get(...call))),
  "mail/close": onConversation(closeParams, (operations, ...call) => operations.close(...call)),
  "mail/join": (call) => (call.params?.catchUp === undefined ? join : reading(join))(call),
  "mail/leave": onConversation(leaveParams, (operations, ...call) => operations.leave(...call)),
  "mail/invite": onConversation(inviteParams, (operations, ...call) => operations.invite(...call)),
  "mail/turn": onConversation(turnParams, (operations, ...call) => operations.turn(...call)),
  "mail/turns/list": reading(
    onConversation(turnsListParams, (operations, ...call) => operations.listTurns(...call)),
  ),
  "mail/thread/create": onConversation(threadCreateParams, (operations, ...call) =>
    operations.createThread(...call),
  ),
  "mail/thread/list": reading(
    onConversation(threadListParams, (operations, ...call) => operations.listThreads(...call)),
  ),
  // It may wait for a model, so it holds none of the places for reading.
  "mail/summary": listing(
    onConversation(summaryParams, (operations, ...call) => operations.summary(...call)),
  ),
  "mail/replay": reading(onConversation(replayParams, (operations, ...call) => operations.replay(...call))),
};

const join = onConversation(joinParams, (operations, ...call) => operations.join(...call));
const list = mailMethod(listParams, listAll);

/** Both kinds in one list. Ids of either kind sort by creation. */
export async function listAll(
  { conversations, tasks }: ConversationKinds,
  actor: Actor,
  params: ListParams,
): Promise<ConversationPage> {
  const native = await conversations.list(actor, params);
  if (tasks === undefined) return native;
  const { filter = {}, limit = DEFAULT_PAGE, cursor, order = "asc" } = params;
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  const ofTasks = await tasks.list(actor, filter, { after, limit: limit + 1, order });
  const sign = order === "asc" ? 1 : -1;
  const all = [...native.conversations, ...ofTasks].sort((a, b) => (a.id < b.id ? -sign : sign));
  // Nothing may be listed beyond the end of a page that its size has cut short.
  const end = native.hasMore ? native.conversations.at(-1)?.id : undefined;
  const isWithin = (id: string): boolean => end === undefined || (order === "asc" ? id <= end : id >= end);
  const page = all.slice(0, limit).filter(({ id }) => isWithin(id));
  const last = page.at(-1);
  const hasMore = native.hasMore || all.length > limit;
  return {
    conversations: page,
    hasMore,
    ...(hasMore && last !== undefined && { nextCursor: cursorOf(last.id) }),
  };
}

/**
 * Methods beyond the thirteen of MAP Mail: `mail/reopen` and `mail/presence` of its version 1.1, and ours, which
 * `capabilities.extensions` announces.
 */
import { z } from "zod";
import { WorkSlice } from "../../../base/node.js";
import {
  type Actor,
  type ConversationOperations,
  MapError,
  memberParams,
  type Participant,
  parseParams,
  presenceParams,
  searchTurns,
  statusParams,
  turnUpdateParams,
  type Unread,
} from "../../../conversations/index.js";
import type { MapContext } from "../context.js";
import { listing, type MethodTable, reading, withSession } from "../method-call.js";
import { principalKey, type Session } from "../session.js";
import { type ConversationKinds, listAll, mailMethod, onConversation, operationsFor } from "./mail.js";

/** What `map/connect` announces beside the capabilities. */
export const EXTENSIONS = [
  { uri: "urn:map:ext:mail:1", version: "1.1.0" },
  { uri: "urn:mailroom:ext:conversations:1", version: "1.0.0" },
] as const;

const id = z.string().min(1).max(256);
const meta = { _meta: z.object({ actAs: id.optional() }).optional() };
const readParams = z.object({ ...meta, conversationId: id, turnId: id });
const unreadParams = z.object({ ...meta, conversationIds: z.array(id).min(1).max(100).optional() });
const searchParams = z.object({
  ...meta,
  query: z.string().trim().min(1).max(200),
  conversationId: id.optional(),
  limit: z.int().min(1).max(100).optional(),
  cursor: z.string().max(1024).optional(),
});
const observerParams = z.object({
  principal: z
    .string()
    .max(256)
    .regex(/^user:./, "must be a user, such as user:ann"),
});

/** Conversations that `mailroom/unread` counts without being asked for certain ones. */
const NEWEST = 50;
/** Conversations that one search looks into, and bytes of contents that it reads. */
const SEARCHED_CONVERSATIONS = 50;
const SEARCHED_BYTES = 8 * 1024 * 1024;

export const mailAdditions: MethodTable = {
  "mail/reopen": onNative(statusParams, ({ conversations }, actor, params) =>
    conversations.change(actor, "active", params),
  ),
  "mailroom/pause": onNative(statusParams, ({ conversations }, actor, params) =>
    conversations.change(actor, "paused", params),
  ),
  "mailroom/archive": onNative(statusParams, ({ conversations }, actor, params) =>
    conversations.change(actor, "archived", params),
  ),
  "mailroom/delete": onNative(statusParams, ({ conversations }, actor, params) =>
    conversations.delete(actor, params),
  ),
  "mailroom/member": onNative(memberParams, ({ conversations }, actor, params) =>
    conversations.changeMember(actor, params),
  ),
  "mailroom/turn/update": onNative(turnUpdateParams, ({ conversations }, actor, params) =>
    conversations.updateTurn(actor, params),
  ),

  "mail/presence": listing((call) =>
    onConversation(presenceParams, async (operations, actor, { conversationId }) => {
      const { participants = [], participantsCursor } = await operations.get(actor, {
        conversationId,
        include: { participants: true },
      });
      return {
        conversationId,
        participants: presenceOf(call.context, actor.space, participants),
        ...(participantsCursor !== undefined && { _meta: { cut: ["participants"] } }),
      };
    })(call),
  ),

  "mailroom/read": reading((call) =>
    onConversation(readParams, async (operations, actor, { conversationId, turnId }) => {
      const readable = await operations.readable(actor, conversationId);
      return call.context.readCursors.mark(actor, readable, turnId);
    })(call),
  ),

  "mailroom/unread": (call) =>
    call.connection.scan(
      async () =>
        mailMethod(unreadParams, async (kinds, actor, { conversationIds }) => {
          const ids = new Set(conversationIds ?? (await newestIds(kinds, actor, NEWEST)));
          const unread: Unread[] = [];
          const slice = new WorkSlice();
          for (const conversationId of ids) {
            await slice.did();
            call.connection.assertOpen();
            const readable = await readableOf(kinds, actor, conversationId, conversationIds === undefined);
            if (readable !== undefined) unread.push(await call.context.readCursors.count(actor, readable));
          }
          return { unread };
        })(call),
      "long",
    ),

  "mailroom/search": (call) =>
    call.connection.scan(async () => mailMethod(searchParams, search)(call), "long"),

  "mailroom/observers/list": forAdmins(({ observers }) => ({ observers: observers.list() })),
  "mailroom/observers/grant": forAdmins((context, params) => setObserver(context, params, true)),
  "mailroom/observers/revoke": forAdmins((context, params) => setObserver(context, params, false)),
};

/** A method that tasks do not support: their conversations follow their mail. */
function onNative<
  Schema extends z.ZodType<{ conversationId: string; _meta?: { actAs?: string | undefined } | undefined }>,
>(
  schema: Schema,
  run: (kinds: ConversationKinds, actor: Actor, params: z.infer<Schema>) => Promise<object>,
): MethodTable[string] {
  return mailMethod(schema, async (kinds, actor, params) => {
    const { conversations, tasks } = kinds;
    const operations = await operationsFor(kinds, params.conversationId);
    return operations === conversations || tasks === undefined
      ? run(kinds, actor, params)
      : tasks.refuse(actor, params);
  });
}

function presenceOf(
  { agents, sessions }: MapContext,
  space: string,
  participants: readonly Participant[],
): object[] {
  return participants
    .filter(({ leftAt }) => leftAt === undefined)
    .map(({ id: participantId, role, joinedAt }) => {
      const session =
        agents.find(space, participantId)?.session ??
        sessions.byParticipant(space, participantId) ??
        sessions.byId(space, participantId);
      const presence = session?.connection === undefined ? "offline" : "online";
      return { participantId, role, joinedAt, presence };
    });
}

async function newestIds(
  kinds: ConversationKinds,
  actor: Actor,
  limit: number,
  cursor?: string,
): Promise<string[]> {
  const page = { limit, order: "desc", ...(cursor !== undefined && { cursor }) } as const;
  return (await listAll(kinds, actor, page)).conversations.map(({ id: conversationId }) => conversationId);
}

/** Undefined, if `lenient`, for a conversation whose history the actor may not read. */
async function readableOf(
  kinds: ConversationKinds,
  actor: Actor,
  conversationId: string,
  lenient: boolean,
): Promise<Awaited<ReturnType<ConversationOperations["readable"]>> | undefined> {
  try {
    return await (await operationsFor(kinds, conversationId)).readable(actor, conversationId);
  } catch (error) {
    if (lenient && error instanceof MapError) return undefined;
    throw error;
  }
}

async function search(
  kinds: ConversationKinds,
  actor: Actor,
  { query, conversationId, limit = 20, cursor }: z.infer<typeof searchParams>,
): Promise<object> {
  const from = cursor === undefined ? undefined : parseSearchCursor(cursor);
  const first = from?.conversationId ?? conversationId;
  const more = conversationId === undefined ? await olderThan(kinds, actor, first) : [];
  const ids = first === undefined || from?.turnId === SEARCHED ? more : [first, ...more];
  const turns: object[] = [];
  let most = SEARCHED_BYTES;
  for (const one of ids) {
    const before = one === from?.conversationId ? from.turnId : undefined;
    const readable = await readableOf(kinds, actor, one, conversationId === undefined);
    if (readable === undefined) continue;
    const step = await searchTurns(readable, { query, before, limit: limit - turns.length, most });
    turns.push(...step.found);
    most -= step.size;
    const next = step.next ?? (most <= 0 ? SEARCHED : undefined);
    if (next !== undefined) return { turns, hasMore: true, nextCursor: searchCursor(one, next) };
  }
  const last = more.length < SEARCHED_CONVERSATIONS ? undefined : more.at(-1);
  if (last === undefined) return { turns, hasMore: false };
  return { turns, hasMore: true, nextCursor: searchCursor(last, SEARCHED) };
}

/** In a cursor instead of a turn: the conversation has been searched, and older ones follow. */
const SEARCHED = "end";

function olderThan(
  kinds: ConversationKinds,
  actor: Actor,
  conversationId: string | undefined,
): Promise<string[]> {
  const cursor = conversationId === undefined ? undefined : Buffer.from(conversationId).toString("base64url");
  return newestIds(kinds, actor, SEARCHED_CONVERSATIONS, cursor);
}

interface SearchPlace {
  readonly conversationId: string;
  readonly turnId: string;
}

function searchCursor(conversationId: string, turnId: string): string {
  return Buffer.from(`${conversationId}\n${turnId}`).toString("base64url");
}

/** @throws MapError INVALID_PARAMS */
function parseSearchCursor(cursor: string): SearchPlace {
  const [conversationId = "", turnId = ""] = Buffer.from(cursor, "base64url").toString().split("\n");
  if (!/^conv-[0-9a-f-]{36}$/.test(conversationId)) {
    throw new MapError("INVALID_PARAMS", "cursor: not a cursor of this search");
  }
  return { conversationId, turnId };
}

function forAdmins(
  run: (context: MapContext, params: unknown) => object | Promise<object>,
): MethodTable[string] {
  return withSession(({ context, session, params }) => {
    if (session.principal?.role !== "admin") {
      throw new MapError("PERMISSION_DENIED", "only admins decide who observes");
    }
    return run(context, params);
  });
}

async function setObserver(context: MapContext, params: unknown, observes: boolean): Promise<object> {
  const { principal } = parseParams(observerParams, params);
  await context.observers.put(principal, observes);
  for (const session of context.sessions.all()) {
    if (principalKey(session.principal) === principal) observeAnew(context, session);
  }
  return { observers: context.observers.list() };
}

function observeAnew({ access }: MapContext, session: Session): void {
  session.setObserver(access.canObserve(session.principal, session.participantType));
}

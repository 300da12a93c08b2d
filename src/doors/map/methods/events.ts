/** `map/subscribe`, `map/unsubscribe`, `map/replay` (REF-31). */
import { z } from "zod";
import {
  type Actor,
  compileFilter,
  MAX_PAGE_BYTES,
  MapError,
  type MapEvent,
  parseParams,
  type ReplayStart,
  roughSize,
  subscriptionFilter,
} from "../../../conversations/index.js";
import type { MapConnection } from "../connection.js";
import type { MapContext } from "../context.js";
import { makeRoom } from "../make-room.js";
import { type MethodCall, type MethodTable, withSession } from "../method-call.js";
import type { Session } from "../session.js";
import { Subscription } from "../subscription.js";

const subscribeParams = z.object({
  filter: subscriptionFilter.optional(),
  replayFrom: z.union([z.string(), z.number()]).optional(),
  options: z.object({ turnReceived: z.boolean().optional() }).optional(),
});

const replayParams = z.object({
  afterEventId: z.string().optional(),
  fromTimestamp: z.number().optional(),
  toTimestamp: z.number().optional(),
  filter: subscriptionFilter.optional(),
  limit: z.int().min(1).optional(),
});

type ReplayParams = z.infer<typeof replayParams>;

const DEFAULT_PAGE = 100;
const MAX_PAGE = 1000;

export const eventMethods: MethodTable = {
  "map/subscribe": withSession(async ({ context, session, connection, params, afterReply }) => {
    const { filter, replayFrom, options } = parseParams(subscribeParams, params);
    const from =
      typeof replayFrom === "number"
        ? { fromTimestamp: replayFrom }
        : replayFrom === undefined
          ? undefined
          : { afterEventId: replayFrom };
    // Reject an unknown id before responding.
    if (from !== undefined) await context.log.replay(from).next();
    await context.subscriptions.follow();
    connection.assertOpen();
    if (context.subscriptions.countOf(session) >= context.limits.maxSubscriptions) {
      throw new MapError(
        "QUOTA_EXCEEDED",
        `a session can have ${context.limits.maxSubscriptions} subscriptions`,
      );
    }
    const isFull = () =>
      context.subscriptions.countOfParty(session) >= context.limits.maxSubscriptionsPerCaller;
    // Those of disconnected sessions end first.
    while (isFull() && context.sessions.endOldestLost(session));
    if (isFull()) {
      throw new MapError(
        "QUOTA_EXCEEDED",
        `a caller can have ${context.limits.maxSubscriptionsPerCaller} subscriptions`,
      );
    }
    makeRoom(context, session, filter);
    const subscription = new Subscription(context.ids.ordered(), session, filter, options);
    context.subscriptions.add(subscription);
    afterReply(() => {
      if (from === undefined) subscription.goLive(context.log.mark());
      else void catchUp(context, connection, subscription, from);
    });
    // Where to continue if the connection is lost before the first event.
    return {
      subscriptionId: subscription.id,
      ...(from === undefined && { _meta: { position: context.log.mark() } }),
    };
  }),

  "map/unsubscribe": withSession(({ context, session, params }) => {
    const { subscriptionId } = parseParams(z.object({ subscriptionId: z.string() }), params);
    if (!context.subscriptions.end(session, subscriptionId)) {
      throw new MapError("INVALID_PARAMS", "subscriptionId: not a subscription of this session");
    }
    return { subscription: { id: subscriptionId, closedAt: context.clock.now() }, unsubscribed: true };
  }),

  "map/replay": withSession(({ context, session, connection, params }) => {
    const asked = parseParams(replayParams, params);
    return connection.scan(() => replay(context, connection, session.actor, asked), "long");
  }),
};

/** Continues the subscriptions of a resumed session where its last connection ended. Returns their ids. */
export function resumeSubscriptions(
  { context, connection, afterReply }: MethodCall,
  session: Session,
): string[] {
  const resumed = context.subscriptions.resumeAll(session);
  afterReply(() => {
    for (const subscription of resumed) {
      void catchUp(context, connection, subscription, { afterMark: subscription.seen });
    }
  });
  return resumed.map(({ id }) => id);
}

/** A subscription that cannot catch up must not look idle: it closes the connection. */
async function catchUp(
  context: MapContext,
  connection: MapConnection,
  subscription: Subscription,
  from: ReplayStart,
): Promise<void> {
  try {
    await connection.inTurn(() => context.subscriptions.replay(subscription, from));
  } catch (error) {
    if (connection.isClosed) return;
    if (error instanceof MapError) {
      connection.close(1013, "too far behind; connect again and replay");
      return;
    }
    context.report(new Error("events could not be replayed", { cause: error }));
    connection.close(1011, "events could not be replayed; connect again and replay");
  }
}

async function replay(
  context: MapContext,
  connection: MapConnection,
  actor: Actor,
  { afterEventId, fromTimestamp, toTimestamp, filter, limit = DEFAULT_PAGE }: ReplayParams,
): Promise<object> {
  const most = Math.min(limit, MAX_PAGE);
  // The response alone must not exceed the send buffer's limit.
  const heaviest = Math.min(MAX_PAGE_BYTES, context.limits.maxBuffered / 2);
  const matches = compileFilter(filter);
  const page: object[] = [];
  let size = 0;
  const journal = await journalOf(context, filter?.mail?.conversationId);
  const events = context.log.replay({
    ...(journal !== undefined && { journal }),
    ...(afterEventId !== undefined && { afterEventId }),
    ...(fromTimestamp !== undefined && { fromTimestamp }),
  });
  for await (const event of events) {
    connection.assertOpen();
    if (afterEventId === undefined && fromTimestamp !== undefined && event.timestamp < fromTimestamp)
      continue;
    if (toTimestamp !== undefined && event.timestamp > toTimestamp) continue;
    if (!event.visibleInReplay(actor) || !matches(event)) continue;
    if (page.length >= most || size > heaviest) return { events: page, hasMore: true };
    const told = toWireEvent(actor, event);
    size += roughSize(told);
    page.push(told);
  }
  return { events: page, hasMore: false };
}

/** The journal that holds the events of one conversation. */
async function journalOf(
  { tasks }: MapContext,
  conversationId: string | undefined,
): Promise<string | undefined> {
  if (conversationId === undefined || conversationId === "") return undefined;
  return (await tasks?.journalOf(conversationId)) ?? conversationId;
}

function toWireEvent(actor: Actor, event: MapEvent): object {
  const { id, type, timestamp, source, causedBy } = event;
  const data = event.dataFor?.(actor) ?? event.data;
  return {
    eventId: id,
    timestamp,
    ...(causedBy !== undefined && { causedBy }),
    event: { id, type, timestamp, source, data },
  };
}

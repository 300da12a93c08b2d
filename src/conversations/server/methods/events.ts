/** `map/subscribe`, `map/unsubscribe`, `map/replay` (map-mail 2.4–2.6). */
import { z } from "zod";
import { MapError } from "../../domain/errors.js";
import { compileFilter, subscriptionFilter } from "../../domain/filter.js";
import { HEAVIEST_PAGE, parseParams } from "../../domain/params.js";
import { roughSize } from "../../domain/size.js";
import type { Caller } from "../../domain/types.js";
import type { MapEvent } from "../../log/event.js";
import type { ReplayStart } from "../../log/event-log.js";
import type { MapConnection } from "../connection.js";
import type { MapServer } from "../map-server.js";
import type { MethodTable } from "../methods.js";
import { Subscription } from "../subscription.js";
import { withSession } from "./with-session.js";

const subscribeParams = z.object({
  filter: subscriptionFilter.optional(),
  replayFrom: z.union([z.string(), z.number()]).optional(),
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
const LARGEST_PAGE = 1000;

export const eventMethods: MethodTable = {
  "map/subscribe": withSession(async ({ server, session, connection, params, afterReply }) => {
    const { filter, replayFrom } = parseParams(subscribeParams, params);
    const from =
      typeof replayFrom === "number"
        ? { fromTimestamp: replayFrom }
        : replayFrom === undefined
          ? undefined
          : { afterEventId: replayFrom };
    // An id that is unknown is refused now, not after the response.
    if (from !== undefined) await server.log.replay(from).next();
    await server.follow();
    connection.assertOpen();
    if (session.subscriptions.size >= server.limits.maxSubscriptions) {
      throw new MapError(
        "QUOTA_EXCEEDED",
        `a session can have ${server.limits.maxSubscriptions} subscriptions`,
      );
    }
    const subscription = new Subscription(server.ids.ordered(), session, filter);
    session.subscriptions.set(subscription.id, subscription);
    server.subscriptions.add(subscription);
    afterReply(() => {
      if (from === undefined) subscription.goLive();
      else void catchUp(server, connection, subscription, from);
    });
    return { subscriptionId: subscription.id };
  }),

  "map/unsubscribe": withSession(({ server, session, params }) => {
    const { subscriptionId } = parseParams(z.object({ subscriptionId: z.string() }), params);
    const subscription = session.subscriptions.get(subscriptionId);
    // Others' subscriptions do not exist for this session.
    if (subscription === undefined) {
      throw new MapError("INVALID_PARAMS", "subscriptionId: not a subscription of this session");
    }
    subscription.close();
    session.subscriptions.delete(subscriptionId);
    server.subscriptions.delete(subscription);
    return { subscription: { id: subscriptionId, closedAt: server.clock.now() }, unsubscribed: true };
  }),

  "map/replay": withSession(({ server, session, connection, params }) => {
    const asked = parseParams(replayParams, params);
    return connection.scan(() => replay(server, connection, session.caller, asked));
  }),
};

/** A subscription that cannot go on from where it was must not look like one to which nothing happens. */
async function catchUp(
  server: MapServer,
  connection: MapConnection,
  subscription: Subscription,
  from: ReplayStart,
): Promise<void> {
  try {
    await connection.scan(() => subscription.replay(server.log, from, () => server.pause()));
  } catch (error) {
    if (connection.isClosed) return;
    if (error instanceof MapError) {
      connection.close(1013, "too far behind; connect again and replay");
      return;
    }
    server.report(new Error("events could not be replayed", { cause: error }));
    connection.close(1011, "events could not be replayed; connect again and replay");
  }
}

async function replay(
  server: MapServer,
  connection: MapConnection,
  caller: Caller,
  { afterEventId, fromTimestamp, toTimestamp, filter, limit = DEFAULT_PAGE }: ReplayParams,
): Promise<object> {
  const most = Math.min(limit, LARGEST_PAGE);
  // An answer must not be what its reader is cut off for.
  const heaviest = Math.min(HEAVIEST_PAGE, server.limits.maxBuffered / 2);
  const matches = compileFilter(filter);
  const page: object[] = [];
  let size = 0;
  const journal = await server.journalOf(filter?.mail?.conversationId);
  const events = server.log.replay({
    ...(journal !== undefined && { journal }),
    ...(afterEventId !== undefined && { afterEventId }),
    ...(fromTimestamp !== undefined && { fromTimestamp }),
  });
  for await (const event of events) {
    connection.assertOpen();
    if (afterEventId === undefined && fromTimestamp !== undefined && event.timestamp < fromTimestamp)
      continue;
    if (toTimestamp !== undefined && event.timestamp > toTimestamp) continue;
    if (!event.toldAgain(caller) || !matches(event)) continue;
    if (page.length >= most || size > heaviest) return { events: page, hasMore: true };
    const told = toldTo(caller, event);
    size += roughSize(told);
    page.push(told);
  }
  return { events: page, hasMore: false };
}

function toldTo(caller: Caller, event: MapEvent): object {
  const { id, type, timestamp, source, causedBy } = event;
  const data = event.dataFor?.(caller) ?? event.data;
  return {
    eventId: id,
    timestamp,
    ...(causedBy !== undefined && { causedBy }),
    event: { id, type, timestamp, source, data },
  };
}

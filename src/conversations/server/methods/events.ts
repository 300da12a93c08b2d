/** `map/subscribe`, `map/unsubscribe`, `map/replay` (map-mail 2.4–2.6). */
import { z } from "zod";
import { MapError } from "../../domain/errors.js";
import { compileFilter, subscriptionFilter } from "../../domain/filter.js";
import { parseParams } from "../../domain/params.js";
import type { MapEvent } from "../../log/event.js";
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
    if (connection.isClosed) throw new MapError("AUTH_REQUIRED", "the connection is closed");
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
      else subscription.replay(server.log, from, () => server.pause()).catch(server.report);
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

  "map/replay": withSession(async ({ server, session, params }) => {
    const {
      afterEventId,
      fromTimestamp,
      toTimestamp,
      filter,
      limit = DEFAULT_PAGE,
    } = parseParams(replayParams, params);
    const most = Math.min(limit, LARGEST_PAGE);
    const matches = compileFilter(filter);
    const { caller } = session;
    const found: MapEvent[] = [];
    const journal = await server.journalOf(filter?.mail?.conversationId);
    const events = server.log.replay({
      ...(journal !== undefined && { journal }),
      ...(afterEventId !== undefined && { afterEventId }),
      ...(fromTimestamp !== undefined && { fromTimestamp }),
    });
    for await (const event of events) {
      if (afterEventId === undefined && fromTimestamp !== undefined && event.timestamp < fromTimestamp)
        continue;
      if (toTimestamp !== undefined && event.timestamp > toTimestamp) continue;
      if (!event.toldAgain(caller) || !matches(event)) continue;
      found.push(event);
      if (found.length > most) break;
    }
    return {
      events: found.slice(0, most).map((event) => {
        const { id, type, timestamp, source, causedBy } = event;
        const data = event.dataFor?.(caller) ?? event.data;
        return {
          eventId: id,
          timestamp,
          ...(causedBy !== undefined && { causedBy }),
          event: { id, type, timestamp, source, data },
        };
      }),
      hasMore: found.length > most,
    };
  }),
};

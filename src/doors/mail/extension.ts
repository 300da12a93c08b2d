/** MAIL over HTTP, and Mailroom's own routes for tasks beside it. */
import type { Report } from "../../base/index.js";
import { defineExtension, type Extension } from "../../extension/index.js";
import type { FullStore, SearchIndex } from "../../store/index.js";
import { Cursors } from "./cursors.js";
import { TaskDigests } from "./digest.js";
import type { MailDoor } from "./door.js";
import { FeedHub } from "./feed/hub.js";
import { adminRoutes } from "./routes/admin.js";
import { approvalRoutes } from "./routes/approvals.js";
import { budgetRoutes } from "./routes/budgets.js";
import { definitionRoutes } from "./routes/definition.js";
import { digestRoutes } from "./routes/digest.js";
import { feedRoutes } from "./routes/feed.js";
import { journalRoutes } from "./routes/journal.js";
import { messageRoutes } from "./routes/message.js";
import { outboxRoutes } from "./routes/outbox.js";
import { searchRoutes } from "./routes/search.js";
import { serverRoutes } from "./routes/server.js";
import { taskRoutes } from "./routes/tasks.js";
import { tokenRoutes } from "./routes/tokens.js";
import { TaskSearch } from "./search.js";

/** What the routes need; `secret` seals the places in the feed that users get. */
export interface MailRoutesOptions
  extends Omit<MailDoor, "cursors" | "feed" | "digests" | "outbox" | "search"> {
  readonly store: FullStore;
  readonly secret: () => Uint8Array;
  readonly report: Report;
}

export function mailRoutes({ secret, report, store, ...parts }: MailRoutesOptions): Extension {
  const { mailroom, clock } = parts;
  const cursors = new Cursors(secret);
  const feed = new FeedHub({ mailroom, cursors, clock, report, stats: () => parts.state.stats });
  const search =
    store.searchIndex === undefined
      ? undefined
      : new TaskSearch({ store, index: () => requiredIndex(store), clock, report });
  const digests = new TaskDigests(mailroom.store);
  const door: MailDoor = { ...parts, cursors, feed, digests, search, outbox: store.outbox };
  return {
    close: () => {
      feed.close();
      search?.close();
    },
    routes: [
      ...serverRoutes(door),
      ...messageRoutes(door),
      ...taskRoutes(door),
      ...approvalRoutes(door),
      ...budgetRoutes(door),
      ...journalRoutes(door),
      ...digestRoutes(door),
      ...feedRoutes(door),
      ...searchRoutes(door),
      ...definitionRoutes(door),
      ...adminRoutes(door),
      ...outboxRoutes(door),
      ...tokenRoutes(door),
    ],
  };
}

function requiredIndex(store: FullStore): SearchIndex {
  const index = store.searchIndex?.();
  if (index === undefined) throw new Error("the store has no search index");
  return index;
}

export const mail = defineExtension({
  name: "mail",
  create({ server, clock, secret, report, store, tokens }) {
    const routes: NonNullable<Extension["routes"]>[number][] = [];
    let opened: Extension | undefined;
    return {
      routes,
      attach({ mailroom, definition, state }) {
        const parts = { mailroom, definition, server, state, clock, report, store, tokens };
        opened = mailRoutes({ ...parts, secret: () => secret("feed") });
        routes.push(...(opened.routes ?? []));
      },
      close: () => opened?.close?.(),
    };
  },
});

/** MAP beside a mailroom: conversations in the same store, tasks as conversations, remote agents. */
import type { Authenticator } from "../../auth/index.js";
import type { Settings } from "../../config/index.js";
import { MapServer } from "../../conversations/index.js";
import { systemClock, systemIds } from "../../library/clock.js";
import type { Mailroom } from "../../library/mailroom.js";
import type { SqliteStore } from "../../store/index.js";
import { versions } from "../version.js";

export interface MapParts {
  readonly mailroom: Mailroom;
  readonly store: SqliteStore;
  readonly authenticator: Authenticator;
  readonly report: (error: unknown) => void;
}

/** Nothing if it is switched off. */
export async function openMap(
  { map, server }: Pick<Settings, "map" | "server">,
  { mailroom, store, authenticator, report }: MapParts,
): Promise<MapServer | undefined> {
  if (!map.enabled) return undefined;
  return MapServer.open({
    store,
    index: store.conversations,
    clock: systemClock,
    ids: systemIds,
    authenticator,
    // In development nobody needs a credential; who shows none is known by nothing but its session.
    authRequired: !server.dev,
    dev: server.dev,
    isolate: map.isolate,
    runtime: mailroom.runtime,
    systemInfo: { name: "mailroom", version: versions().mailroom },
    report,
    ...(!map.mail && { mail: false }),
  });
}

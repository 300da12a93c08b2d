/** Reads `GET /feed` on a real connection. */
import { request as httpRequest } from "node:http";
import { fieldOf, parseStream, type StreamedEvent } from "./harness.js";

export interface OpenFeed {
  /** Events so far, whole ones only. */
  readonly events: StreamedEvent[];
  /** Resolves when an event satisfies the condition; rejects when the stream ends before. */
  until(condition: (event: StreamedEvent) => boolean): Promise<StreamedEvent>;
  readonly ended: Promise<void>;
  close(): void;
}

export interface FeedOptions {
  readonly token?: string;
  readonly query?: string;
  readonly lastEventId?: string | undefined;
  /** Called after each piece of data, for tests that cut the connection. */
  readonly onData?: (feed: OpenFeed) => void;
}

export function openFeed(url: string, options: FeedOptions = {}): Promise<OpenFeed> {
  const { token, query = "", lastEventId, onData } = options;
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${url}/feed${query === "" ? "" : `?${query}`}`,
      {
        agent: false,
        headers: {
          accept: "text/event-stream",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
        },
      },
      (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          reject(new Error(`the feed answered ${response.statusCode}`));
          return;
        }
        const events: StreamedEvent[] = [];
        const waiting = new Set<() => void>();
        let isOver = false;
        let rest = "";
        let end = () => {};
        const feed: OpenFeed = {
          events,
          ended: new Promise((done) => {
            end = done;
          }),
          close: () => request.destroy(),
          until: (condition) =>
            new Promise((found, lost) => {
              let looked = 0;
              const look = () => {
                for (; looked < events.length; looked++) {
                  const event = events[looked];
                  if (event === undefined || !condition(event)) continue;
                  waiting.delete(look);
                  found(event);
                  return;
                }
                if (isOver) lost(new Error(`the feed ended: ${JSON.stringify(events.slice(-5))}`));
              };
              waiting.add(look);
              look();
            }),
        };
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          rest += chunk;
          const whole = rest.lastIndexOf("\r\n\r\n") + 4;
          if (whole >= 4) {
            events.push(...parseStream(rest.slice(0, whole)));
            rest = rest.slice(whole);
            for (const look of [...waiting]) look();
          }
          onData?.(feed);
        });
        response.on("error", () => {});
        response.on("close", () => {
          isOver = true;
          for (const look of [...waiting]) look();
          end();
        });
        resolve(feed);
      },
    );
    request.on("error", reject);
    request.end();
  });
}

/** The numbers of all entries in a feed, in the order of arrival. */
export function entryNumbers(events: readonly StreamedEvent[]): unknown[] {
  return events.flatMap(({ event, data }) => {
    const entries = event === "entries" ? fieldOf(data, "entries") : [];
    return Array.isArray(entries) ? entries.map((entry) => fieldOf(entry, "n")) : [];
  });
}

export function lastId(events: readonly StreamedEvent[]): string | undefined {
  return events.findLast(({ id }) => id !== undefined)?.id;
}

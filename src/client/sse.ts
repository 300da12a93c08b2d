/** Reads one HTTP answer as server-sent events. */
import { createParser } from "eventsource-parser";
import { dataOf, type MailEvent } from "./events.js";

export interface ReadOptions {
  /** Milliseconds in which something must arrive; servers ping every 15 seconds. */
  readonly idleLimit: number;
  /** Called when nothing arrived for that long; must make the body's reader fail. */
  readonly onIdle: () => void;
}

export function isEventStream(response: Response): boolean {
  return response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
}

/** An event that was cut in the middle is not an event: it is dropped, and comes again when the stream is resumed. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  options: ReadOptions,
): AsyncGenerator<MailEvent, void, undefined> {
  const ready: MailEvent[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => {
      ready.push({
        ...(id !== undefined && id !== "" && { id }),
        event: event ?? "message",
        data: dataOf(data),
      });
    },
  });
  // A character may be cut by a chunk's end, so the decoder has to remember.
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const idle = setTimeout(options.onIdle, options.idleLimit);
      const chunk = await reader.read().finally(() => clearTimeout(idle));
      if (chunk.done) return;
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      yield* ready.splice(0);
    }
  } finally {
    // Whoever stops reading lets go of the connection; a body that failed has nothing left to cancel.
    await reader.cancel().catch(() => {});
  }
}

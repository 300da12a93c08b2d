/** Reads one HTTP response as server-sent events. */
import { createParser } from "eventsource-parser";

export interface ReadOptions {
  /** Milliseconds within which data must arrive. Servers ping every 15 seconds. */
  readonly idleLimit: number;
  /** Called when no data arrived for that long. Must make the body's reader fail. */
  readonly onIdle: () => void;
  /** Called with each comment, which is not an event. */
  readonly onComment?: (text: string) => void;
}

export function isEventStream(response: Response): boolean {
  return response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
}

/** An event as it was received. */
export interface SseEvent {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** Yields events. Drops an incomplete one, which is sent again when the stream is resumed. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  options: ReadOptions,
): AsyncGenerator<SseEvent, void, undefined> {
  const ready: SseEvent[] = [];
  const parser = createParser({
    ...(options.onComment !== undefined && { onComment: options.onComment }),
    onEvent: ({ id, event, data }) => {
      ready.push({ ...(id !== undefined && id !== "" && { id }), event: event ?? "message", data });
    },
  });
  // A chunk may end inside a character, so the decoder keeps state.
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
    // A reader that stops releases the connection; a failed body has nothing to cancel.
    await reader.cancel().catch(() => {});
  }
}

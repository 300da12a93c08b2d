/** Limits the size of a provider's answer. */
import { tooLargeAnswer } from "./failures.js";

/** Bytes of an answer, or of one line of a streamed answer. The longest answers of models have a few megabytes. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/** Bytes of a whole stream. Each piece of an answer has a frame of some hundred bytes around it. */
const MAX_STREAM_BYTES = 512 * 1024 * 1024;

const LINE_FEED = 10;

/** Bytes that are passed on at once from a stream. */
const CHUNK = 8 * 1024;

export function boundedFetch(send: typeof fetch, maxBytes = MAX_ANSWER_BYTES): typeof fetch {
  return async (input, init) => {
    const response = await send(input, init);
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.includes("event-stream") === true;
    let bytes = 0;
    let line = 0;
    const bounds = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        const end = isStream ? chunk.lastIndexOf(LINE_FEED) : -1;
        line = end < 0 ? line + chunk.byteLength : chunk.byteLength - end - 1;
        if (line > maxBytes || bytes > MAX_STREAM_BYTES) throw tooLargeAnswer(maxBytes);
        if (!isStream) return controller.enqueue(chunk);
        // For each line, the parser of streams searches all of a chunk.
        for (let at = 0; at < chunk.byteLength; at += CHUNK)
          controller.enqueue(chunk.subarray(at, at + CHUNK));
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(bounds), { status, statusText, headers });
  };
}

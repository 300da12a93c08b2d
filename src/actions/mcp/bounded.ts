/** Limits the size of responses: a response as a whole, a stream per event, because it may be endless. */
import { NetError } from "../../net/index.js";

export function boundedFetch(send: typeof fetch, maxBytes: number): typeof fetch {
  return async (input, init) => {
    const response = await send(input, init);
    if (response.body === null) return response;
    const url = input instanceof Request ? input.url : String(input);
    const size = isEventStream(response) ? new EventSize() : new WholeSize();
    const bounds = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        if (size.after(chunk) > maxBytes)
          throw new NetError("response_too_large", `it sent more than ${maxBytes} bytes at once`, {
            url,
            mayHaveArrived: true,
          });
        controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(bounds), { status, statusText, headers });
  };
}

function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
}

class WholeSize {
  #bytes = 0;

  after(chunk: Uint8Array): number {
    this.#bytes += chunk.byteLength;
    return this.#bytes;
  }
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * Returns the size of the largest event so far, complete or not. An empty line ends an event; lines end with LF, CR or
 * both.
 */
class EventSize {
  #largest = 0;
  #event = 0;
  #line = 0;
  #afterReturn = false;

  after(chunk: Uint8Array): number {
    for (const byte of chunk) {
      const isRest = byte === LINE_FEED && this.#afterReturn;
      this.#afterReturn = byte === CARRIAGE_RETURN;
      if (isRest) continue;
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) {
        if (this.#line === 0) this.#event = 0;
        this.#line = 0;
        continue;
      }
      this.#line++;
      this.#event++;
      if (this.#event > this.#largest) this.#largest = this.#event;
    }
    return this.#largest;
  }
}

/** The guarded client in the shape of `fetch`, for libraries that accept one. */
import type { HttpClient, RequestOptions } from "./client.js";

export type FetchOptions = Omit<RequestOptions, "method" | "headers" | "body" | "signal">;

/** Statuses whose responses must not have a body. */
const BODILESS = new Set([101, 204, 205, 304]);

export function createFetch(client: HttpClient, options: FetchOptions = {}): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    const stream = await client.open(request.url, {
      maxRedirects: request.redirect === "follow" ? 5 : 0,
      ...options,
      method: request.method,
      headers: Object.fromEntries(request.headers),
      signal: request.signal,
      ...(body !== undefined && { body }),
    });
    const { status, headers } = stream;
    if (BODILESS.has(status)) {
      stream.close();
      return new Response(null, { status, headers });
    }
    return new Response(
      toReadable(stream.body, () => stream.close()),
      { status, headers },
    );
  };
}

function toReadable(parts: AsyncIterable<Uint8Array>, close: () => void): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    cancel: close,
  });
}

export interface TextAnswer {
  readonly status: number;
  readonly text: string;
}

export interface FetchLimits {
  /** Milliseconds for everything, the body included. */
  readonly timeout: number;
  /** Bytes of the body. */
  readonly size: number;
}

/**
 * One request to a service that the operator configured. Redirects are not followed: the credential is for this address
 * only.
 */
export async function fetchText(
  url: string,
  request: { readonly method: string; readonly headers: Headers | Readonly<Record<string, string>> },
  { timeout, size }: FetchLimits,
): Promise<TextAnswer> {
  const response = await fetch(url, {
    method: request.method,
    headers: new Headers(request.headers),
    redirect: "manual",
    signal: AbortSignal.timeout(timeout),
  });
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    // Breaking out of the loop cancels the body.
    if (length > size) throw new Error(`the response has more than ${size} bytes`);
    chunks.push(chunk);
  }
  return { status: response.status, text: Buffer.concat(chunks).toString("utf8") };
}

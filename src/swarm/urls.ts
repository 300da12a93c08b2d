/** `url::https://…` inside `agent_params`: a JSON document, fetched when the swarm is loaded. */
import { BadReferenceError } from "./references.js";

export interface UrlOptions {
  /** Hosts (`example.com`, `example.com:8443`) that may be fetched from. Default: none. */
  readonly allowedHosts?: readonly string[];
  /** Milliseconds. Default: 10 seconds. */
  readonly timeLimit?: number;
  /** Bytes. Default: 1 MiB. */
  readonly sizeLimit?: number;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
}

const PREFIX = "url::";

export function isUrlReference(text: string): boolean {
  return text.startsWith(PREFIX);
}

/**
 * The document as compact JSON text, which is what factories of the reference implementation get.
 * @throws BadReferenceError that says what went wrong; nothing is ever put in the place of a failed document.
 */
export async function fetchReference(reference: string, options: UrlOptions = {}): Promise<string> {
  const url = parseUrl(reference.slice(PREFIX.length));
  const allowed = options.allowedHosts ?? [];
  if (!allowed.includes(url.host)) {
    throw new BadReferenceError(
      `'${shown(url)}' may not be fetched: host '${url.host}' is not allowed`,
      `allow it when you load the file: { urls: { allowedHosts: ["${url.host}"] } }`,
    );
  }
  const text = await download(url, options);
  try {
    return JSON.stringify(JSON.parse(text));
  } catch (error) {
    throw new BadReferenceError(`'${shown(url)}' did not answer with JSON`, undefined, { cause: error });
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new BadReferenceError(`'${text}' is not an http(s) URL`, "write url::https://host/path.json");
  }
  if (url.username !== "" || url.password !== "") {
    throw new BadReferenceError(
      `'url::' must not carry a user name or password`,
      "serve the document without them",
    );
  }
  return url;
}

async function download(url: URL, options: UrlOptions): Promise<string> {
  const { timeLimit = 10_000, sizeLimit = 1_048_576 } = options;
  const request = options.fetch ?? fetch;
  const signal = AbortSignal.timeout(timeLimit);
  try {
    // A redirect could lead to a host that nobody allowed.
    const response = await request(url, {
      signal,
      redirect: "manual",
      headers: { accept: "application/json" },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      const redirected = response.status >= 300 && response.status < 400;
      throw new BadReferenceError(
        `'${shown(url)}' answered with status ${response.status}`,
        redirected ? "redirects are not followed: write the final address" : undefined,
      );
    }
    return await readLimited(response, url, sizeLimit);
  } catch (error) {
    if (error instanceof BadReferenceError) throw error;
    const reason = signal.aborted ? `no answer within ${timeLimit} ms` : describe(error);
    throw new BadReferenceError(`'${shown(url)}' could not be fetched: ${reason}`, undefined, {
      cause: error,
    });
  }
}

async function readLimited(response: Response, url: URL, sizeLimit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > sizeLimit) throw new BadReferenceError(`'${shown(url)}' is larger than ${sizeLimit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Without the query, which may hold a secret. */
function shown(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // fetch hides the reason ("ECONNREFUSED") in the cause.
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

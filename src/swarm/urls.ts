/** `url::https://…` inside `agent_params`: a JSON document, fetched when the swarm is loaded. */
import { hasCode } from "../base/index.js";
import { badReference } from "./references.js";

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
 * Returns the document as compact JSON text, as factories of the reference implementation receive it.
 * @throws MailroomError `bad_reference`. A failed document has no substitute.
 */
export async function fetchReference(reference: string, options: UrlOptions = {}): Promise<string> {
  const url = parseUrl(reference.slice(PREFIX.length));
  const allowed = options.allowedHosts ?? [];
  if (!allowed.includes(url.host)) {
    throw badReference(
      `'${shown(url)}' cannot be fetched: host '${url.host}' is not allowed`,
      `allow it when loading the file: { urls: { allowedHosts: ["${url.host}"] } }`,
    );
  }
  const text = await download(url, options);
  try {
    return JSON.stringify(JSON.parse(text));
  } catch (error) {
    throw badReference(`'${shown(url)}' did not return JSON`, undefined, { cause: error });
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw badReference(`'${text}' is not an http(s) URL`, "write url::https://host/path.json");
  }
  if (url.username !== "" || url.password !== "") {
    throw badReference(`'url::' must not contain a user name or password`, "serve the document without them");
  }
  return url;
}

async function download(url: URL, options: UrlOptions): Promise<string> {
  const { timeLimit = 10_000, sizeLimit = 1_048_576 } = options;
  const request = options.fetch ?? fetch;
  const signal = AbortSignal.timeout(timeLimit);
  try {
    // A redirect could lead to a host that is not allowed.
    const response = await request(url, {
      signal,
      redirect: "manual",
      headers: { accept: "application/json" },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      const redirected = response.status >= 300 && response.status < 400;
      throw badReference(
        `'${shown(url)}' answered with status ${response.status}`,
        redirected ? "redirects are not followed; write the final URL" : undefined,
      );
    }
    return await readLimited(response, url, sizeLimit);
  } catch (error) {
    if (hasCode(error, "bad_reference")) throw error;
    const reason = signal.aborted ? `no answer within ${timeLimit} ms` : describe(error);
    throw badReference(`'${shown(url)}' could not be fetched: ${reason}`, undefined, {
      cause: error,
    });
  }
}

async function readLimited(response: Response, url: URL, sizeLimit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > sizeLimit) throw badReference(`'${shown(url)}' is larger than ${sizeLimit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Without the query, which may contain a secret. */
function shown(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // fetch hides the reason ("ECONNREFUSED") in the cause.
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

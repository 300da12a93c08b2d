/** Requests to the server that served the page. */
import { signal } from "@preact/signals";

const html = document.documentElement;
/** Where the console and the server are. Read once: the address of the page changes later. */
export const BASE = new URL(html.dataset.base ?? "./", location.href);
export const ROOT = new URL(html.dataset.root ?? "../", location.href);

const PROOF = `mailroom.proof:${BASE.pathname}`;

export interface Caller {
  readonly role: string;
  readonly id: string;
  /** The server takes every name at its word. */
  readonly dev: boolean;
  readonly expires?: string | number | undefined;
  readonly tokenId?: string | undefined;
}

/** Who the page acts as; undefined until that is known, null when somebody has to sign in. */
export const caller = signal<Caller | null | undefined>(undefined);
/** Whether a session has ended while the page was open. */
export const ended = signal(false);
/** Whether the link that the page was opened with signs in no more. */
export const linkRefused = signal(false);
/** Why nothing can be written now; undefined when it can. */
export const readOnly = signal<string | undefined>(undefined);

export function isAdmin(): boolean {
  return caller.value?.role === "admin";
}

export function callerName(): string {
  const who = caller.value;
  return who === null || who === undefined ? "" : `${who.role}:${who.id}`;
}

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly retryAfter: number | undefined;
  readonly requestId: string | undefined;
  constructor(status: number, code: string, message: string, retryAfter?: number, requestId?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
    this.requestId = requestId;
  }
}

export interface RequestOptions {
  readonly method?: string;
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
  /** Makes a repeated write take effect once. */
  readonly key?: string;
  readonly signal?: AbortSignal;
  /** In development mode: act as this person. */
  readonly as?: string | undefined;
  readonly accept?: string;
}

export function urlOf(path: string, query: RequestOptions["query"] = {}): URL {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
  }
  return url;
}

function headersOf({ body, key, as, accept }: RequestOptions): Record<string, string> {
  const headers: Record<string, string> = { accept: accept ?? "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key !== undefined) headers["idempotency-key"] = key;
  const who = caller.value;
  if (who?.dev === true) headers.authorization = `Bearer ${as ?? `${who.role}:${who.id}`}`;
  else {
    const proof = readProof();
    if (proof !== undefined) headers["x-mailroom-console"] = proof;
  }
  return headers;
}

/** @throws ApiError when the server refuses, TypeError when it cannot be reached */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const method = options.method ?? (options.body === undefined ? "GET" : "POST");
  const response = await fetch(urlOf(path, options.query), {
    method,
    headers: headersOf(options),
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
    referrerPolicy: "no-referrer",
    ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    ...(options.signal !== undefined && { signal: options.signal }),
  });
  if (response.ok) return response;
  const error = await errorOf(response);
  if (response.status === 401 && caller.value !== undefined && caller.value !== null) signOutLocally();
  throw error;
}

/**
 * The answers are our own server's, of the version that served the page; they are not checked again here, but every
 * text in them is treated as a stranger's.
 */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options);
  return response.status === 204 ? (undefined as T) : await response.json();
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  let code = String(response.status);
  let message = response.statusText === "" ? `the server answered ${response.status}` : response.statusText;
  try {
    const body: unknown = JSON.parse(text);
    const found = wordsOf(body);
    code = found.code ?? code;
    message = found.message ?? message;
  } catch {
    if (text !== "" && text.length < 300 && !text.includes("<")) message = text;
  }
  const wait = Number(response.headers.get("retry-after"));
  const id = response.headers.get("x-request-id") ?? undefined;
  return new ApiError(
    response.status,
    code,
    message,
    Number.isFinite(wait) && wait > 0 ? wait : undefined,
    id,
  );
}

function wordsOf(body: unknown): { code?: string; message?: string } {
  if (typeof body !== "object" || body === null) return {};
  const found: { code?: string; message?: string } = {};
  for (const [name, value] of Object.entries(body)) {
    if (typeof value === "object" && value !== null && name === "error") return wordsOf(value);
    if (typeof value !== "string") continue;
    if (name === "code" || name === "error_code") found.code = value;
    if (name === "message" || name === "detail" || name === "error_description") found.message ??= value;
    if (name === "error") found.message ??= value;
  }
  return found;
}

export function readProof(): string | undefined {
  try {
    return localStorage.getItem(PROOF) ?? undefined;
  } catch {
    return undefined;
  }
}

function keepProof(proof: string | undefined): void {
  try {
    if (proof === undefined) localStorage.removeItem(PROOF);
    else localStorage.setItem(PROOF, proof);
  } catch {
    // Without storage the session lasts as long as the page.
  }
}

function signOutLocally(): void {
  ended.value = true;
  caller.value = null;
}

interface SessionAnswer {
  readonly role: string;
  readonly id: string;
  readonly expires?: string | number;
  readonly proof?: string;
}

/** Finds out who the page acts as: development mode, a session from before, a link that signs in, or nobody yet. */
export async function identify(): Promise<void> {
  const code = /^#code=([\w-]{8,200})$/.exec(location.hash)?.[1];
  if (code !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      await openSession({ code });
      return;
    } catch {
      // The person can still sign in with a token.
      linkRefused.value = true;
    }
  }
  const response = await fetch(urlOf("whoami"), {
    headers: headersOf({}),
    credentials: "same-origin",
    cache: "no-store",
  });
  if (response.ok) {
    const who: { role: string; id?: string; dev?: boolean; token_id?: string } = await response.json();
    const dev = who.dev === true;
    const kept = dev ? devIdentity() : undefined;
    caller.value = kept ?? {
      role: dev ? "admin" : who.role,
      id: dev ? "dev" : (who.id ?? ""),
      dev,
      tokenId: who.token_id,
    };
    return;
  }
  await response.body?.cancel();
  if (response.status !== 401 && response.status !== 403)
    throw new ApiError(response.status, String(response.status), `the server answered ${response.status}`);
  caller.value = null;
}

export async function openSession(
  body: { readonly token: string } | { readonly code: string },
): Promise<void> {
  const response = await fetch(new URL("session", BASE), {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(body),
    credentials: "same-origin",
  });
  if (!response.ok) throw await errorOf(response);
  const answer: SessionAnswer = await response.json();
  keepProof(answer.proof);
  ended.value = false;
  caller.value = { role: answer.role, id: answer.id, dev: false, expires: answer.expires };
}

export async function closeSession(): Promise<void> {
  await fetch(new URL("session", BASE), {
    method: "DELETE",
    headers: headersOf({}),
    credentials: "same-origin",
  });
  keepProof(undefined);
  ended.value = false;
  caller.value = null;
}

const DEV_IDENTITY = `mailroom.identity:${BASE.pathname}`;

function devIdentity(): Caller | undefined {
  const kept = sessionStorage.getItem(DEV_IDENTITY) ?? "";
  const at = kept.indexOf(":");
  return at < 0 ? undefined : { role: kept.slice(0, at), id: kept.slice(at + 1), dev: true };
}

/** Development mode only. */
export function actAs(name: string): void {
  const at = name.indexOf(":");
  if (at <= 0) return;
  sessionStorage.setItem(DEV_IDENTITY, name);
  location.reload();
}

/**
 * A key for one write, kept until that write was answered: a tab that dies and comes back repeats it, and the server
 * takes it once.
 */
export function writeKey(what: string): string {
  const name = `mailroom.write:${what}`;
  const kept = sessionStorage.getItem(name);
  if (kept !== null) return kept;
  const made = crypto.randomUUID();
  sessionStorage.setItem(name, made);
  return made;
}

export function writeDone(what: string): void {
  sessionStorage.removeItem(`mailroom.write:${what}`);
}

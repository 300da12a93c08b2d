/**
 * A session that outlives its connections. A lost connection is opened again with growing, randomized pauses, and the
 * session is resumed with its token.
 */
import { deferred, isRecord, sleep, urgentClock } from "../../base/index.js";
import { type ConnectionState, notify, type StateListener } from "../connection-state.js";
import { ConversationError, isTemporary } from "../conversations-errors.js";
import { backoff } from "../retry.js";
import { MapLink, type NotificationListener } from "./link.js";
import { openSocket, type WebSocketLike } from "./socket.js";

/** A bearer token, or a function that returns a fresh one for each connection. */
export type TokenSource = string | (() => string | Promise<string>);

export interface SessionOptions {
  readonly address: string;
  readonly token?: TokenSource | undefined;
  readonly open?: ((url: string) => WebSocketLike) | undefined;
  readonly timeout: number;
  /** Consecutive connections that may fail. */
  readonly reconnects: number;
  readonly idleLimit: number;
  /** Whether the first connection is repeated like later ones. */
  readonly waitForServer: boolean;
  readonly participantType: "client" | "agent";
  readonly onState?: StateListener | undefined;
  readonly onNotification: NotificationListener;
  /**
   * Called after each connection with the answer of `map/connect`, before anybody else may use the connection.
   * @throws to end the session
   */
  readonly onOpen?: (link: MapLink, answer: Readonly<Record<string, unknown>>) => Promise<void> | void;
}

export interface SessionCall {
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Sends the call again if the connection was lost before the response. */
  readonly repeat?: boolean | undefined;
}

/** A connection that lasts this long in milliseconds counts as a success, even if nothing was received. */
const STABLE = 5_000;
const PROTOCOL_VERSION = 1;

export class MapSession {
  readonly #options: SessionOptions;
  readonly #stop = new AbortController();
  readonly #finished = deferred<void>();
  #state: ConnectionState = { status: "connecting", attempt: 1 };
  #link: MapLink | undefined;
  /** Settled when the next connection is open, or when there will be none. */
  #next = pending();
  #end: ConversationError | undefined;
  #resumeToken: string | undefined;
  #everOpen = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    void this.#run();
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Resolves after `close`, and rejects when the session has ended for another reason. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** The open connection. Waits for one. @throws ConversationError why there will be none */
  async link(signal?: AbortSignal): Promise<MapLink> {
    if (this.#link !== undefined) return this.#link;
    if (this.#end !== undefined) throw this.#end;
    signal?.throwIfAborted();
    if (signal === undefined) return this.#next.promise;
    const aborted = deferred<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([this.#next.promise, aborted.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  get openLink(): MapLink | undefined {
    return this.#link;
  }

  /** @throws ConversationError, or the signal's reason */
  async request(method: string, params: object, call: SessionCall = {}): Promise<Record<string, unknown>> {
    const { timeout = this.#options.timeout } = call;
    const deadline = Date.now() + timeout;
    const late = () => new ConversationError("timeout", `${method} got no response within ${timeout} ms`);
    for (;;) {
      const link = this.#link ?? (await this.#linkBefore(deadline, call.signal, method));
      const left = deadline - Date.now();
      if (left <= 0) throw late();
      try {
        return await link.request(method, params, { timeout: left, signal: call.signal });
      } catch (error) {
        if (isLost(error) && this.#end !== undefined) throw this.#end;
        if (!isLost(error) || call.repeat !== true) throw error;
      }
    }
  }

  /** Ends everything. Calls fail with `closed`. */
  close(): void {
    this.fail(new ConversationError("closed", "the client is closed"));
  }

  /** Ends everything with this error. */
  fail(error: ConversationError): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    const link = this.#link;
    this.#link = undefined;
    this.#next.reject(error);
    this.#stop.abort(error);
    link?.close();
    const { code, message, closing } = error;
    const why = closing === undefined ? {} : { code: closing.code };
    if (code === "closed") this.#set({ status: "closed", code: 1000, reason: message });
    else this.#set({ status: "closed", ...why, reason: closing?.reason || message, error });
    if (code === "closed") this.#finished.resolve();
    else this.#finished.reject(error);
    // Callers that are interested have their own handlers.
    this.#finished.promise.catch(() => {});
  }

  async #linkBefore(deadline: number, signal: AbortSignal | undefined, method: string): Promise<MapLink> {
    const limit = AbortSignal.timeout(Math.max(0, deadline - Date.now()));
    try {
      return await this.link(signal === undefined ? limit : AbortSignal.any([signal, limit]));
    } catch (error) {
      if (!limit.aborted || signal?.aborted === true || error === this.#end) throw error;
      const why = this.#state.status === "waiting" ? `: ${this.#state.reason}` : "";
      throw new ConversationError("connection_lost", `${method} was not sent: there is no connection${why}`);
    }
  }

  async #run(): Promise<void> {
    const { reconnects, waitForServer } = this.#options;
    for (let failures = 0; this.#end === undefined; ) {
      this.#set({ status: "connecting", attempt: failures + 1 });
      let error: ConversationError;
      let started = Date.now();
      let link: MapLink | undefined;
      try {
        link = await this.#connect();
        started = Date.now();
        await link.closed;
        error = link.lost();
        this.#link = undefined;
        this.#next = pending();
      } catch (cause) {
        error = toError(cause);
      }
      if (this.#end !== undefined) return;
      const worked = link !== undefined && (link.received > 1 || Date.now() - started > STABLE);
      failures = worked ? 1 : failures + 1;
      const isFirst = !this.#everOpen && !waitForServer;
      if (isFirst || failures > reconnects || this.#isFinal(error)) return this.fail(error);
      const delay = error.retryAfter ?? backoff(failures, error);
      const { closing } = error;
      this.#set({
        status: "waiting",
        attempt: failures,
        delay,
        ...(closing !== undefined && { code: closing.code }),
        reason: closing?.reason || error.message,
      });
      await sleep(urgentClock, delay, this.#stop.signal).catch(() => {});
    }
  }

  async #connect(): Promise<MapLink> {
    const { address, open = openSocket, timeout, onOpen } = this.#options;
    const token = await this.#token();
    const { signal } = this.#stop;
    const link = await MapLink.open(
      address,
      { open, timeout, onNotification: (...frame) => this.#notified(...frame) },
      signal,
    );
    const onAbort = () => link.close();
    signal.addEventListener("abort", onAbort, { once: true });
    void link.closed.then(() => signal.removeEventListener("abort", onAbort));
    try {
      const answer = await this.#enter(link, token);
      await onOpen?.(link, answer);
      if (!link.isOpen) throw link.lost("map/connect");
      this.#opened(link, answer.reconnected === true);
      return link;
    } catch (error) {
      link.close();
      throw error;
    }
  }

  async #token(): Promise<string | undefined> {
    const { token } = this.#options;
    return typeof token === "function" ? token() : token;
  }

  async #enter(link: MapLink, token: string | undefined): Promise<Readonly<Record<string, unknown>>> {
    const { participantType, timeout } = this.#options;
    const method = "map/connect";
    let answer: Record<string, unknown>;
    try {
      answer = await link.request(
        method,
        {
          protocolVersion: PROTOCOL_VERSION,
          participantType,
          ...(token !== undefined && { auth: { method: "bearer", token } }),
          ...(this.#resumeToken !== undefined && { resumeToken: this.#resumeToken }),
        },
        { timeout },
      );
    } catch (error) {
      // A page of a foreign origin is connected and closed at once.
      throw isLost(error) && error.closing !== undefined ? link.refusal(error.closing) : error;
    }
    if (answer.authRequired !== undefined) {
      throw ConversationError.refused(method, { code: 1000, message: "the server requires a token" });
    }
    if (typeof answer.resumeToken === "string") this.#resumeToken = answer.resumeToken;
    return answer;
  }

  #opened(link: MapLink, resumed: boolean): void {
    this.#everOpen = true;
    this.#link = link;
    this.#watch(link);
    this.#next.resolve(link);
    this.#set({ status: "open", resumed });
  }

  /** A connection may be dead without having been closed: a silent one is asked something. */
  #watch(link: MapLink): void {
    const { idleLimit, timeout } = this.#options;
    const check = () => {
      const silence = Date.now() - link.lastReceived;
      if (silence < idleLimit) return later(idleLimit - silence);
      link
        .request("map/scopes/list", { limit: 1 }, { timeout: Math.min(timeout, idleLimit) })
        .catch((error: unknown) => {
          if (!(error instanceof ConversationError) || error.code !== "timeout") return;
          link.abort({ code: 1006, reason: `no data for ${Date.now() - link.lastReceived} ms` });
        })
        .finally(() => later(idleLimit));
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = (ms: number) => {
      if (link.isOpen) timer = setTimeout(check, ms);
    };
    later(idleLimit);
    void link.closed.then(() => clearTimeout(timer));
  }

  #notified(...[notification, link]: Parameters<NotificationListener>): void {
    if (notification.method === "map/auth/expiring" && typeof this.#options.token === "function") {
      // If it fails, the server closes the connection, and the next one uses a new token.
      void this.#refresh(link).catch(() => {});
    }
    this.#options.onNotification(notification, link);
  }

  async #refresh(link: MapLink): Promise<void> {
    const token = await this.#token();
    const { timeout } = this.#options;
    await link.request("map/auth/refresh", { method: "bearer", token }, { timeout });
  }

  /** Whether another attempt would have the same result. */
  #isFinal(error: ConversationError): boolean {
    if (error.code === "replaced") return true;
    if (error.code !== "refused") return false;
    // A gateway may refuse for a while when its server restarts.
    if (isRecord(error.data) && typeof error.data.status === "number") return !this.#everOpen;
    return !isTemporary(error);
  }

  #set(state: ConnectionState): void {
    this.#state = state;
    notify(this.#options.onState, state);
  }
}

function pending(): ReturnType<typeof deferred<MapLink>> {
  const next = deferred<MapLink>();
  next.promise.catch(() => {});
  return next;
}

export function isLost(error: unknown): error is ConversationError {
  return error instanceof ConversationError && error.code === "connection_lost";
}

function toError(cause: unknown): ConversationError {
  if (cause instanceof ConversationError) return cause;
  return new ConversationError("unreachable", `no connection: ${String(cause)}`, { cause });
}

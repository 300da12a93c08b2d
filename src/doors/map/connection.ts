/**
 * One connection over any transport: text in, text out. Requests start in the order of arrival. Requests that
 * change the caller's identity (connect, authenticate, disconnect) block those behind them.
 */

import type { Authenticator } from "../../auth/index.js";
import type { Clock } from "../../base/index.js";
import { RateLimiter, Semaphore } from "../../base/index.js";
import type { FairTurns } from "../../base/node.js";
import { MapError } from "../../conversations/index.js";
import type { Admission, Admitted } from "./admission.js";
import type { BudgetedConnection, MemoryBudget } from "./memory-budget.js";
import {
  errorFrame,
  type Incoming,
  notificationFrame,
  parseFrame,
  type RequestId,
  resultFrame,
} from "./rpc.js";
import type { Session, SessionConnection } from "./session.js";
import type { MapLimits } from "./settings.js";
import { toMapError } from "./to-map-error.js";

/** What a connection sends through. */
export interface Transport {
  send(text: string): void;
  /** Bytes waiting to be sent. */
  readonly buffered: number;
  /** `code` is a WebSocket close code; other transports only close. */
  close(code: number, reason: string): void;
  /** Closes at once and drops what waits to be sent. */
  abort?(): void;
  /** Stops and continues reading. */
  pause?(): void;
  resume?(): void;
}

export interface ConnectionOptions {
  /** A credential from the transport (an HTTP header), used when `map/connect` has none. */
  readonly credential?: string;
  /** Overrides the server's authenticator, for transports that identify the peer themselves. */
  readonly authenticator?: Authenticator;
  /** The client's address, if the transport has one. */
  readonly address?: string;
  /** The credential of a page that is signed in to the console, for the proof that it sends. */
  readonly credentialWith?: (proof: string) => string | undefined;
}

/** A request, with what its handler may do to the connection. */
export interface ConnectionCall {
  readonly connection: MapConnection;
  /** Absent only for methods that establish it. */
  readonly session: Session | undefined;
  readonly params: Readonly<Record<string, unknown>> | undefined;
  /** Runs immediately after the response is written. */
  readonly afterReply: (act: () => void) => void;
}

export type ConnectionHandler = (call: ConnectionCall) => object | Promise<object>;

/** What a connection needs of the server. */
export interface ConnectionHost {
  readonly limits: MapLimits;
  readonly clock: Clock;
  readonly report: (error: unknown) => void;
  readonly authenticator: Authenticator | undefined;
  readonly admission: Admission;
  readonly memory: MemoryBudget;
  readonly turns: FairTurns;
  /** For pages: all connections share it. */
  readonly reads: Semaphore;
  /** For scans that may take long: limited per caller only, so that no caller waits for another's. */
  readonly scans: Semaphore;
  handlerOf(method: string): ConnectionHandler | undefined;
  /** The session has sent a request. */
  requestReceived(session: Session): void;
  /** The connection is closed. */
  disconnected(connection: MapConnection): void;
}

type Request = Extract<Incoming, { kind: "request" }>;

/** The credential that authenticated the session. */
export interface SessionCredential {
  readonly credential: string;
  /** Present for tokens that can be revoked. */
  readonly tokenId?: string | undefined;
  /** When it expires, if that is known. */
  readonly expiresAt?: number | undefined;
}

/** A request and its length as text, which approximates its size in memory. */
interface Accepted {
  readonly request: Request;
  readonly size: number;
}

/** No later request starts while one of these runs. */
const BARRIERS = new Set(["map/connect", "map/authenticate", "map/auth/refresh", "map/disconnect"]);

/** How long before the expiry of a credential the client is notified. The SDK refreshes as early. */
const EXPIRY_NOTICE = 60_000;
/** The shortest time between two checks of a credential. */
const MIN_REVIEW = 100;

/** Reads that one connection may run at once. */
const MAX_SCANS = 2;

/** Milliseconds between checks whether a slow client has caught up. */
const SLOW_CLIENT_PAUSE = 10;

const MINUTE = 60_000;

let connections = 0;

export class MapConnection implements SessionConnection, BudgetedConnection, Admitted {
  readonly address: string | undefined;
  readonly credential: string | undefined;
  readonly credentialWith: ConnectionOptions["credentialWith"];
  readonly authenticator: Authenticator | undefined;
  /** The parameters of the last `map/connect`, while authentication is pending. */
  requestedOptions: unknown;
  session: Session | undefined;
  authFailures = 0;
  readonly #host: ConnectionHost;
  readonly #transport: Transport;
  readonly #cancelHandshake: () => void;
  readonly #scans = new Semaphore({ limit: MAX_SCANS });
  #owner: string;
  /** Frames that wait for the caller's next turn. */
  #inbox: string[] = [];
  #waiting: Accepted[] = [];
  #barrier = false;
  #inFlight = 0;
  /** Whether waiting requests start in the caller's next turn. */
  #scheduled = false;
  /** The total size of running and waiting requests. */
  #size = 0;
  /** Bytes received since the last complete frame. */
  #unfinished = 0;
  #receivedBytes = 0;
  #frames = 0;
  #caughtUp: Promise<void> | undefined;
  #paused = false;
  #closed = false;
  readonly #rate: RateLimiter;
  readonly #malformed: RateLimiter;
  readonly #pings: RateLimiter;
  #sessionCredential: SessionCredential | undefined;
  #cancelReview = (): void => {};
  #expiryTold = false;

  constructor(host: ConnectionHost, transport: Transport, options: ConnectionOptions = {}) {
    this.#host = host;
    this.#transport = transport;
    this.credential = options.credential;
    this.credentialWith = options.credentialWith;
    this.authenticator = options.authenticator ?? host.authenticator;
    this.address = options.address;
    this.#owner =
      options.address === undefined ? `connection:${connections++}` : `address:${options.address}`;
    const { clock, limits } = host;
    this.#malformed = new RateLimiter({ limit: limits.maxMalformed, window: MINUTE }, clock);
    this.#pings = new RateLimiter({ limit: limits.maxPings, window: MINUTE }, clock);
    // Over two seconds, so that short bursts pass.
    this.#rate = new RateLimiter({ limit: limits.requestsPerSecond * 2, window: 2_000 }, clock);
    // The SDK's reconnection opens sockets on which it never sends anything (REF-34).
    this.#cancelHandshake = clock.after(limits.handshakeTimeout, () => {
      if (this.session === undefined) this.close(1008, "map/connect was not received in time");
    });
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get buffered(): number {
    return this.#transport.buffered;
  }

  get owner(): string {
    return this.#owner;
  }

  get held(): number {
    return this.#unfinished + this.#size + this.#transport.buffered;
  }

  /** Bytes have arrived; `receive` follows when they complete a frame. */
  receiving(bytes: number): void {
    if (this.#closed) return;
    this.#unfinished += bytes;
    if (this.session === undefined) {
      this.#receivedBytes += bytes;
      if (this.#receivedBytes > this.#host.limits.maxBytesBeforeConnect) {
        this.close(1009, "too much data before map/connect");
        return;
      }
    }
    this.#host.memory.update(this);
  }

  /** The client has sent a ping or a pong. */
  pinged(): void {
    if (!this.#pings.take("").allowed) this.close(1008, "too many pings");
  }

  /** One frame. Never throws. */
  receive(text: string): void {
    if (this.#closed) return;
    this.#unfinished = 0;
    const { turns } = this.#host;
    if (this.#inbox.length === 0 && turns.mayWork(this.#owner)) {
      turns.work(this.#owner, text.length, () => this.#receive(text));
      return;
    }
    this.#size += text.length;
    if (this.#inbox.push(text) === 1) turns.next(() => this.#readInbox());
    this.#readOrNot();
  }

  #readInbox(): void {
    const { turns } = this.#host;
    let read = 0;
    for (const text of this.#inbox) {
      if (this.#closed || !turns.mayWork(this.#owner)) break;
      read++;
      this.#size -= text.length;
      turns.work(this.#owner, text.length, () => this.#receive(text));
    }
    if (this.#closed) return;
    this.#inbox = this.#inbox.slice(read);
    if (this.#inbox.length > 0) turns.next(() => this.#readInbox());
    this.#readOrNot();
  }

  #receive(text: string): void {
    if (this.session === undefined && ++this.#frames > this.#host.limits.maxFramesBeforeConnect) {
      this.close(1008, "too many frames before map/connect");
      return;
    }
    const frame = parseFrame(text);
    switch (frame.kind) {
      case "invalid":
        this.reject(frame.error, frame.id);
        return;
      case "notification":
      case "response":
        // Clients only notify how far they have read, which the server does not use.
        return;
      case "request":
        this.#accept({ request: frame, size: text.length });
        return;
      default:
        frame satisfies never;
    }
  }

  /** Answers a malformed frame. A client that sends many is disconnected. */
  reject(error: MapError, id: RequestId = null): void {
    this.send(errorFrame(id, error.toWire()));
    this.#host.admission.malformed(this);
    if (!this.#malformed.take("").allowed) this.close(1008, "too many malformed frames");
  }

  /**
   * Sends a frame, in the order of calls. A reader that is too slow loses the connection, never single
   * frames.
   */
  send(text: string): void {
    if (this.#closed) return;
    try {
      this.#transport.send(text);
    } catch (error) {
      this.#host.report(new Error("sending a frame failed", { cause: error }));
      this.close(1011, "a frame was lost; connect again and replay");
      return;
    }
    if (this.#transport.buffered > this.#host.limits.maxBuffered) {
      this.close(1013, "too far behind; connect again and replay");
    }
    this.#host.memory.update(this);
  }

  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.#transport.close(code, reason);
    this.lost();
  }

  /**
   * The client disconnects and closes the transport itself; the server closes it later if the client does
   * not.
   */
  finish(): void {
    this.lost();
    this.#host.clock.after(1000, () => this.#transport.close(1000, "goodbye"));
  }

  /** The transport is closed. */
  lost(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#waiting = [];
    this.#inbox = [];
    this.#cancelHandshake();
    this.#cancelReview();
    this.#host.disconnected(this);
  }

  /** The transport has released everything that waited to be sent. */
  released(): void {
    this.#host.memory.remove(this);
  }

  abort(): void {
    this.#transport.abort?.();
    this.released();
  }

  /**
   * The connection is about to get a session of this caller.
   * @throws MapError QUOTA_EXCEEDED
   */
  admit(caller: string | undefined): void {
    this.#host.admission.admit(this, caller);
    if (caller !== undefined) this.#owner = caller;
  }

  /**
   * Limits reads, so that one caller cannot delay the others or fill the memory. Does not start to read for a closed
   * connection, nor for a client that has not read earlier answers.
   */
  scan<Result>(work: () => Promise<Result>, length: "page" | "long" = "page"): Promise<Result> {
    const gate = length === "page" ? this.#host.reads : this.#host.scans;
    return this.inTurn(async () => {
      for (;;) {
        if (this.#isBehind) await this.#catchUp();
        const leave = gate.tryAcquire(this.#owner) ?? (await gate.acquire(this.#owner));
        try {
          const turn = this.#host.turns.whole(this.#owner);
          if (turn !== undefined) await turn;
          this.assertOpen();
          if (!this.#isBehind) return await work();
        } finally {
          leave();
        }
      }
    });
  }

  /** Begins the work in a turn of the event loop in which nothing else of this caller begins, for a client that reads. */
  async inWholeTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      if (this.#isBehind) await this.#catchUp();
      const turn = this.#host.turns.whole(this.#owner);
      if (turn !== undefined) await turn;
      this.assertOpen();
      if (!this.#isBehind) return await work();
    }
  }

  /** Limits only this connection's own work, for work that waits for others meanwhile. */
  async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    // At once if possible, so that requests take effect in the order of arrival.
    const leave = this.#scans.tryAcquire() ?? (await this.#scans.acquire());
    try {
      this.assertOpen();
      return await work();
    } finally {
      leave();
    }
  }

  /** @throws MapError AUTH_REQUIRED, to end the request; the client can no longer receive it */
  assertOpen(): void {
    if (this.#closed) throw new MapError("AUTH_REQUIRED", "the connection is closed");
  }

  /** Records the credential. It is checked again periodically, because it can expire or be revoked. */
  authenticatedWith(sessionCredential: SessionCredential | undefined): void {
    this.#sessionCredential = sessionCredential;
    this.#expiryTold = false;
    this.#reviewLater();
  }

  /** The token has been revoked. */
  revoked(tokenId: string): void {
    if (this.#sessionCredential?.tokenId === tokenId) this.close(1008, "the credential is no longer valid");
  }

  async #review(): Promise<void> {
    const sessionCredential = this.#sessionCredential;
    if (sessionCredential === undefined) return;
    this.#tellExpiry(sessionCredential);
    const found = await this.authenticator?.authenticate(sessionCredential.credential);
    // The credential may have been replaced meanwhile; an unavailable authenticator has not rejected it.
    if (
      found === undefined ||
      found.ok ||
      found.reason === "unavailable" ||
      sessionCredential !== this.#sessionCredential
    )
      return;
    this.close(1008, "the credential is no longer valid");
  }

  #reviewLater(): void {
    this.#cancelReview();
    if (this.#sessionCredential === undefined || this.#closed) return;
    const { clock, limits, report } = this.#host;
    const { expiresAt } = this.#sessionCredential;
    const until = (time: number): number => Math.max(MIN_REVIEW, time - clock.now());
    // At the notice and at the expiry itself, so that neither comes late.
    const delay =
      expiresAt === undefined
        ? limits.pingInterval
        : Math.min(limits.pingInterval, until(this.#expiryTold ? expiresAt : expiresAt - EXPIRY_NOTICE));
    this.#cancelReview = clock.after(delay, () => {
      this.#review()
        .catch(report)
        .finally(() => this.#reviewLater());
    });
  }

  /** Once, so that the client can call `map/auth/refresh` in time. */
  #tellExpiry({ expiresAt }: SessionCredential): void {
    if (expiresAt === undefined || this.#expiryTold || this.session === undefined) return;
    const expiresInMs = expiresAt - this.#host.clock.now();
    if (expiresInMs > EXPIRY_NOTICE) return;
    this.#expiryTold = true;
    this.send(notificationFrame("map/auth/expiring", { expiresAt, expiresInMs: Math.max(0, expiresInMs) }));
  }

  #accept(accepted: Accepted): void {
    const { request, size } = accepted;
    const { maxWaiting, maxRequestSize } = this.#host.limits;
    const { allowed, resetAt } = this.#rate.take("");
    if (!allowed) {
      const retryAfterMs = resetAt - this.#host.clock.now();
      this.#fail(request, new MapError("RATE_LIMITED", undefined, { retryAfterMs }));
    } else if (this.#waiting.length >= maxWaiting || this.#size > maxRequestSize * 2) {
      this.#fail(request, new MapError("EXHAUSTED", "too many requests are waiting on this connection"));
    } else {
      this.#size += size;
      if (this.#canStart && this.#waiting.length === 0) this.#start(accepted);
      else this.#waiting.push(accepted);
      if (this.#isBehind) void this.#catchUp();
      this.#readOrNot();
      this.#host.memory.update(this);
    }
  }

  get #canStart(): boolean {
    return !this.#barrier && this.#inFlight < this.#host.limits.maxInFlight && !this.#isBehind;
  }

  /** Whether the client has to read before anything is done for it. */
  get #isBehind(): boolean {
    return !this.#closed && this.#transport.buffered > this.#host.limits.maxUnread;
  }

  /** Resolves when the client has read enough, or is gone. */
  #catchUp(): Promise<void> {
    this.#caughtUp ??= this.#pollUnread().then(() => {
      this.#caughtUp = undefined;
      this.#next();
    });
    return this.#caughtUp;
  }

  async #pollUnread(): Promise<void> {
    while (this.#isBehind) {
      await new Promise<void>((resolve) => {
        this.#host.clock.after(SLOW_CLIENT_PAUSE, resolve);
      });
    }
  }

  #start(accepted: Accepted): void {
    const { request, size } = accepted;
    const handler = this.#host.handlerOf(request.method);
    if (handler === undefined) {
      this.#size -= size;
      this.#fail(request, new MapError("METHOD_NOT_FOUND", `unknown method ${request.method.slice(0, 100)}`));
      return;
    }
    if (BARRIERS.has(request.method)) this.#barrier = true;
    this.#inFlight++;
    void this.#run(accepted, handler);
  }

  #next(): void {
    const { turns } = this.#host;
    while (this.#canStart) {
      const [accepted] = this.#waiting;
      if (accepted === undefined) break;
      if (!turns.mayWork(this.#owner)) {
        this.#nextTurn();
        break;
      }
      this.#waiting.shift();
      turns.work(this.#owner, 0, () => this.#start(accepted));
    }
    if (this.#waiting.length > 0 && this.#isBehind) void this.#catchUp();
    this.#readOrNot();
  }

  #nextTurn(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#host.turns.next(() => {
      this.#scheduled = false;
      this.#next();
    });
  }

  /**
   * Pauses reading while too many requests are running, and while an unauthenticated peer is being
   * authenticated.
   */
  #readOrNot(): void {
    const { maxInFlight, maxRequestSize } = this.#host.limits;
    const busy =
      this.#barrier ||
      this.#inbox.length > 0 ||
      (this.#waiting.length > 0 && this.#isBehind) ||
      (this.#size > 0 && this.#host.memory.isCrowded(this.#owner));
    if (this.#paused) {
      if (busy || this.#inFlight >= maxInFlight / 2 || this.#size > maxRequestSize / 2) return;
      this.#paused = false;
      this.#transport.resume?.();
    } else if (busy || this.#inFlight >= maxInFlight || this.#size > maxRequestSize) {
      this.#paused = true;
      this.#transport.pause?.();
    }
  }

  async #run({ request, size }: Accepted, handler: ConnectionHandler): Promise<void> {
    try {
      const session = this.#sessionFor(request.method);
      const after: (() => void)[] = [];
      const result = await handler({
        connection: this,
        session,
        params: request.params,
        afterReply: (act) => after.push(act),
      });
      // Writing a large answer takes as long as reading it.
      if (!this.#closed) {
        this.#host.turns.work(this.#owner, 0, () => this.send(resultFrame(request.id, result)));
      }
      for (const act of after) act();
    } catch (error) {
      this.#fail(request, toMapError(error, request.method, this.#host.report));
    } finally {
      this.#inFlight--;
      this.#size -= size;
      this.#host.memory.update(this);
      if (BARRIERS.has(request.method)) this.#barrier = false;
    }
    if (this.authFailures >= this.#host.limits.maxAuthFailures) {
      this.close(1008, "too many failed authentication attempts");
    }
    this.#next();
  }

  /** @throws MapError AUTH_REQUIRED */
  #sessionFor(method: string): Session | undefined {
    const { session } = this;
    if (session !== undefined) {
      session.lastActiveAt = this.#host.clock.now();
      this.#host.requestReceived(session);
      return session;
    }
    if (BARRIERS.has(method) && method !== "map/disconnect") return undefined;
    throw new MapError("AUTH_REQUIRED");
  }

  #fail({ id }: Request, error: MapError): void {
    this.send(errorFrame(id, error.toWire()));
  }
}

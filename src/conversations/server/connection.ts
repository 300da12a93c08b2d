/**
 * One connection, whatever carries it: text in, text out. Requests start in the order in which they come; those that
 * change who the caller is (connect, authenticate, disconnect) let nothing overtake them.
 */
import type { Authenticator } from "../../auth/result.js";
import { MapError } from "../domain/errors.js";
import { Gate } from "./gate.js";
import type { MapServer } from "./map-server.js";
import type { Handler } from "./methods.js";
import { errorFrame, type Incoming, parseFrame, resultFrame } from "./rpc.js";
import type { Session } from "./session.js";

/** What carries a connection. */
export interface Wire {
  send(text: string): void;
  /** Bytes that wait to be sent. */
  readonly buffered: number;
  /** WebSocket close codes; other carriers just end. */
  close(code: number, reason: string): void;
  /** Stop and go on reading. */
  pause?(): void;
  resume?(): void;
}

export interface ConnectionOptions {
  /** A credential that came with the connection itself (an HTTP header); used when `map/connect` brings none. */
  readonly credential?: string;
  /** In place of the server's: for a carrier that knows who is at its other end. */
  readonly authenticator?: Authenticator;
}

type Request = Extract<Incoming, { kind: "request" }>;

/** What a caller was let in with. */
export interface Proof {
  readonly credential: string;
  /** Of a token that can be revoked. */
  readonly tokenId?: string | undefined;
}

/** A request, and how long it was as text: what came of it takes about as much memory. */
interface Accepted {
  readonly request: Request;
  readonly size: number;
}

/** Nothing may overtake these. */
const BARRIERS = new Set(["map/connect", "map/authenticate", "map/auth/refresh", "map/disconnect"]);

/** Long readings of one connection that go on at the same time. */
const MOST_SCANS = 2;

export class MapConnection {
  readonly credential: string | undefined;
  readonly authenticator: Authenticator | undefined;
  /** What the last `map/connect` asked for, while authentication is missing. */
  wishes: unknown;
  session: Session | undefined;
  authFailures = 0;
  readonly #server: MapServer;
  readonly #wire: Wire;
  readonly #cancelHandshake: () => void;
  readonly #scans = new Gate(MOST_SCANS);
  #waiting: Accepted[] = [];
  #barrier = false;
  #inFlight = 0;
  /** Of all that is under way or waits. */
  #size = 0;
  #paused = false;
  #closed = false;
  /** Requests that may come at once; refills over time. */
  #tokens: number;
  #refilledAt: number;
  #proof: Proof | undefined;
  #cancelReview = (): void => {};

  constructor(server: MapServer, wire: Wire, options: ConnectionOptions = {}) {
    this.#server = server;
    this.#wire = wire;
    this.credential = options.credential;
    this.authenticator = options.authenticator ?? server.authenticator;
    const { clock, limits } = server;
    this.#tokens = limits.requestsPerSecond * 2;
    this.#refilledAt = clock.now();
    // The SDK's reconnection opens sockets on which it never speaks (map-mail C5).
    this.#cancelHandshake = clock.after(limits.handshakeTimeout, () => {
      if (this.session === undefined) this.close(1008, "map/connect did not come in time");
    });
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get buffered(): number {
    return this.#wire.buffered;
  }

  /** One frame. Never throws. */
  receive(text: string): void {
    if (this.#closed) return;
    const frame = parseFrame(text);
    switch (frame.kind) {
      case "invalid":
        this.send(errorFrame(frame.id, frame.error.toWire()));
        return;
      case "notification":
      case "response":
        // All that clients notify us of is how far they have read, and we never wait for that.
        return;
      case "request":
        this.#accept({ request: frame, size: text.length });
        return;
      default:
        frame satisfies never;
    }
  }

  /** Frames leave in the order of these calls. Whoever reads too slowly loses the connection, never single frames. */
  send(text: string): void {
    if (this.#closed) return;
    try {
      this.#wire.send(text);
    } catch (error) {
      this.#server.report(new Error("a frame could not be handed to its carrier", { cause: error }));
      this.close(1011, "a frame was lost; connect again and replay");
      return;
    }
    if (this.#wire.buffered > this.#server.limits.maxBuffered) {
      this.close(1013, "too far behind; connect again and replay");
    }
  }

  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.#wire.close(code, reason);
    this.lost();
  }

  /** The client has said goodbye, and closes the carrier itself; ours follows in case it does not. */
  finish(): void {
    this.lost();
    this.#server.clock.after(1000, () => this.#wire.close(1000, "goodbye"));
  }

  /** The carrier is gone. */
  lost(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#waiting = [];
    this.#cancelHandshake();
    this.#cancelReview();
    this.#server.disconnected(this);
  }

  /**
   * For what reads much: however much one connection asks for, the others are served meanwhile. Nothing is begun for
   * somebody who is gone.
   */
  scan<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#scans.pass(async () => {
      this.assertOpen();
      return work();
    });
  }

  /** @throws MapError AUTH_REQUIRED, which nobody gets to read */
  assertOpen(): void {
    if (this.#closed) throw new MapError("AUTH_REQUIRED", "the connection is closed");
  }

  /** The caller was let in with this. It is asked about again and again, for it may expire or be withdrawn. */
  letInWith(proof: Proof | undefined): void {
    this.#proof = proof;
    this.#reviewLater();
  }

  /** A token is not good any more, from this moment on. */
  revoked(tokenId: string): void {
    if (this.#proof?.tokenId === tokenId) this.close(1008, "the credential is no longer good");
  }

  async #review(): Promise<void> {
    const proof = this.#proof;
    if (proof === undefined) return;
    const found = await this.authenticator?.authenticate(proof.credential);
    // Another one may have been shown meanwhile; and who cannot be asked has not said no.
    if (found === undefined || found.ok || found.reason === "unavailable" || proof !== this.#proof) return;
    this.close(1008, "the credential is no longer good");
  }

  #reviewLater(): void {
    this.#cancelReview();
    if (this.#proof === undefined || this.#closed) return;
    const { clock, limits, report } = this.#server;
    this.#cancelReview = clock.after(limits.pingInterval, () => {
      this.#review()
        .catch(report)
        .finally(() => this.#reviewLater());
    });
  }

  #accept(accepted: Accepted): void {
    const { request, size } = accepted;
    const { maxWaiting, maxRequestSize } = this.#server.limits;
    if (!this.#withinRate()) {
      this.#fail(request, new MapError("RATE_LIMITED", undefined, { retryAfterMs: 1000 }));
    } else if (this.#waiting.length >= maxWaiting || this.#size > maxRequestSize * 2) {
      this.#fail(request, new MapError("EXHAUSTED", "too many requests of this connection are waiting"));
    } else {
      this.#size += size;
      if (this.#mayStart) this.#start(accepted);
      else this.#waiting.push(accepted);
      this.#readOrNot();
    }
  }

  get #mayStart(): boolean {
    return !this.#barrier && this.#inFlight < this.#server.limits.maxInFlight;
  }

  #start(accepted: Accepted): void {
    const { request, size } = accepted;
    const handler = this.#server.methods.get(request.method);
    if (handler === undefined) {
      this.#size -= size;
      this.#fail(
        request,
        new MapError("METHOD_NOT_FOUND", `there is no method ${request.method.slice(0, 100)}`),
      );
      return;
    }
    if (BARRIERS.has(request.method)) this.#barrier = true;
    this.#inFlight++;
    void this.#run(accepted, handler);
  }

  #next(): void {
    while (this.#mayStart) {
      const accepted = this.#waiting.shift();
      if (accepted === undefined) break;
      this.#start(accepted);
    }
    this.#readOrNot();
  }

  /** Who sends more than is dealt with is not read until it is, and neither is a stranger while it is being judged. */
  #readOrNot(): void {
    const { maxInFlight, maxRequestSize } = this.#server.limits;
    if (this.#paused) {
      if (this.#barrier || this.#inFlight >= maxInFlight / 2 || this.#size > maxRequestSize / 2) return;
      this.#paused = false;
      this.#wire.resume?.();
    } else if (this.#barrier || this.#inFlight >= maxInFlight || this.#size > maxRequestSize) {
      this.#paused = true;
      this.#wire.pause?.();
    }
  }

  async #run({ request, size }: Accepted, handler: Handler): Promise<void> {
    try {
      const session = this.#sessionFor(request.method);
      const after: (() => void)[] = [];
      const result = await handler({
        server: this.#server,
        connection: this,
        session,
        params: request.params,
        afterReply: (act) => after.push(act),
      });
      this.send(resultFrame(request.id, result));
      for (const act of after) act();
    } catch (error) {
      this.#fail(request, this.#server.toMapError(error, request.method));
    } finally {
      this.#inFlight--;
      this.#size -= size;
      if (BARRIERS.has(request.method)) this.#barrier = false;
    }
    if (this.authFailures >= this.#server.limits.maxAuthFailures) {
      this.close(1008, "too many failed attempts to authenticate");
    }
    this.#next();
  }

  /** @throws MapError AUTH_REQUIRED */
  #sessionFor(method: string): Session | undefined {
    const { session } = this;
    if (session !== undefined) {
      session.lastActiveAt = this.#server.clock.now();
      this.#server.messages.spoke(session);
      return session;
    }
    if (BARRIERS.has(method) && method !== "map/disconnect") return undefined;
    throw new MapError("AUTH_REQUIRED");
  }

  #fail({ id }: Request, error: MapError): void {
    this.send(errorFrame(id, error.toWire()));
  }

  #withinRate(): boolean {
    const { requestsPerSecond } = this.#server.limits;
    if (requestsPerSecond === 0) return true;
    const now = this.#server.clock.now();
    const refill = ((now - this.#refilledAt) / 1000) * requestsPerSecond;
    this.#tokens = Math.min(requestsPerSecond * 2, this.#tokens + refill);
    this.#refilledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

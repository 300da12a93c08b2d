/** Law 7: everything that can grow has a limit, and each limit an error that names it (map-mail 1.7). */
export interface MapLimits {
  /** Bytes of one frame. */
  readonly maxFrame: number;
  /** Milliseconds until a connection must have said `map/connect`. */
  readonly handshakeTimeout: number;
  /** Milliseconds between pings; a connection that answers none of two in a row is dead. */
  readonly pingInterval: number;
  /** Bytes that may wait to be sent; a connection that falls further behind is closed with 1013. */
  readonly maxBuffered: number;
  /** Requests of one connection that may be under way. Reading stops there. */
  readonly maxInFlight: number;
  /** Requests that came before reading stopped, and wait for those under way. */
  readonly maxWaiting: number;
  /** Characters of requests that are under way or wait. Reading stops there; twice as many are refused. */
  readonly maxRequestSize: number;
  /** Requests per second of one connection, in the long run; twice as many at once. 0: no limit. */
  readonly requestsPerSecond: number;
  readonly maxSubscriptions: number;
  readonly maxAgents: number;
  readonly maxScopes: number;
  /** Scopes of one principal. */
  readonly maxScopesEach: number;
  readonly maxConnections: number;
  /** Failed attempts to authenticate before the connection is closed. */
  readonly maxAuthFailures: number;
  /** Milliseconds for which a lost session can be taken up again. */
  readonly resumeWindow: number;
  /** Sessions of one principal that wait for that; beyond, the one that was lost first is over. */
  readonly maxLostSessions: number;
  /** Messages held for an agent that is away, and for how long. */
  readonly maxHeld: number;
  readonly heldFor: number;
  /** Milliseconds that a `map/send` waits for its turn to be recorded. */
  readonly recordingTimeout: number;
  /** Core events kept in memory for `map/replay`. */
  readonly eventRing: number;
  /** What they may weigh together, in bytes. */
  readonly eventRingBytes: number;
}

export const DEFAULT_MAP_LIMITS: MapLimits = {
  maxFrame: 1024 * 1024,
  handshakeTimeout: 10_000,
  pingInterval: 30_000,
  maxBuffered: 16 * 1024 * 1024,
  maxInFlight: 256,
  maxWaiting: 10_000,
  maxRequestSize: 8 * 1024 * 1024,
  requestsPerSecond: 0,
  maxSubscriptions: 100,
  maxAgents: 1000,
  maxScopes: 10_000,
  maxScopesEach: 1000,
  maxConnections: 10_000,
  maxAuthFailures: 5,
  resumeWindow: 5 * 60_000,
  maxLostSessions: 1000,
  maxHeld: 100,
  heldFor: 60_000,
  recordingTimeout: 2000,
  eventRing: 10_000,
  eventRingBytes: 32 * 1024 * 1024,
};

/** Limits connections: in total, per address, per caller, and from addresses that keep sending malformed frames. */
import type { Clock } from "../../base/index.js";
import { RateLimiter } from "../../base/index.js";
import { MapError } from "../../conversations/index.js";
import type { MapLimits } from "./settings.js";

/** The connection as far as it is counted. */
export interface Admitted {
  /** Undefined for transports without one. */
  readonly address: string | undefined;
}

export class Admission {
  readonly #limits: MapLimits;
  readonly #all = new Set<Admitted>();
  readonly #byAddress = new Counts();
  /** Connections without a session, by address. */
  readonly #pending = new Counts();
  readonly #byCaller = new Counts();
  readonly #callers = new Map<Admitted, string>();
  readonly #malformed: RateLimiter;

  constructor(limits: MapLimits, clock: Clock) {
    this.#limits = limits;
    this.#malformed = new RateLimiter({ limit: limits.maxMalformedPerAddress, window: 60_000 }, clock);
  }

  /** Why a connection from this address cannot be accepted now. */
  refusal(address: string | undefined): string | undefined {
    const { maxConnections, maxConnectionsPerAddress, maxPendingPerAddress } = this.#limits;
    if (this.#all.size >= maxConnections) return "too many connections";
    if (address === undefined) return undefined;
    if (this.#byAddress.of(address) >= maxConnectionsPerAddress)
      return "too many connections from this address";
    if (this.#pending.of(address) >= maxPendingPerAddress)
      return "too many connections from this address wait for map/connect";
    if (!this.#malformed.peek(address).allowed)
      return "too many malformed frames from this address; retry in a minute";
    return undefined;
  }

  opened(connection: Admitted): void {
    this.#all.add(connection);
    if (connection.address === undefined) return;
    this.#byAddress.add(connection.address, 1);
    this.#pending.add(connection.address, 1);
  }

  /**
   * The connection is about to get a session.
   * @throws MapError QUOTA_EXCEEDED
   */
  admit(connection: Admitted, caller: string | undefined): void {
    if (this.#callers.has(connection)) return;
    const { maxConnectionsPerCaller } = this.#limits;
    if (caller !== undefined && this.#byCaller.of(caller) >= maxConnectionsPerCaller) {
      throw new MapError(
        "QUOTA_EXCEEDED",
        `a caller can have ${maxConnectionsPerCaller} connections; close one and connect again`,
        { limit: maxConnectionsPerCaller },
      );
    }
    // Anonymous callers are counted by address only.
    this.#callers.set(connection, caller ?? "");
    if (caller !== undefined) this.#byCaller.add(caller, 1);
    if (connection.address !== undefined) this.#pending.add(connection.address, -1);
  }

  closed(connection: Admitted): void {
    if (!this.#all.delete(connection)) return;
    const { address } = connection;
    const caller = this.#callers.get(connection);
    this.#callers.delete(connection);
    if (caller !== undefined && caller !== "") this.#byCaller.add(caller, -1);
    if (address === undefined) return;
    this.#byAddress.add(address, -1);
    if (caller === undefined) this.#pending.add(address, -1);
  }

  malformed({ address }: Admitted): void {
    if (address !== undefined) this.#malformed.take(address);
  }
}

class Counts {
  readonly #counts = new Map<string, number>();

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string, amount: number): void {
    const count = this.of(key) + amount;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }
}

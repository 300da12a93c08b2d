import { FederationError } from "../errors.js";

const MINUTE = 60_000;

/** How much each peer has sent in this minute. Peers are few: they have tokens. */
export class PeerRates {
  readonly #limit: number;
  readonly #counts = new Map<string, { minute: number; count: number }>();

  /** 0 for no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @throws FederationError `too_many_requests` */
  admit(peer: string, now: number): void {
    if (this.#limit === 0) return;
    const minute = Math.floor(now / MINUTE);
    const known = this.#counts.get(peer);
    if (known === undefined || known.minute !== minute) {
      this.#counts.set(peer, { minute, count: 1 });
      return;
    }
    known.count++;
    if (known.count <= this.#limit) return;
    const seconds = Math.ceil(((minute + 1) * MINUTE - now) / 1000);
    throw new FederationError(
      "too_many_requests",
      `swarm '${peer}' has sent more than ${this.#limit} messages in a minute`,
      { retry_after: seconds },
    );
  }
}

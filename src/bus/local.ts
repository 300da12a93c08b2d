import type { Bus } from "../journal/index.js";

export interface LocalBusOptions {
  /** Receives errors of handlers. By default the process emits a warning. */
  readonly onError?: (error: unknown, channel: string) => void;
}

interface Subscription {
  readonly handler: (note: unknown) => void;
  /** The number of notifications published before it subscribed: it receives only later ones. */
  readonly since: number;
}

interface Pending {
  readonly channel: string;
  readonly note: unknown;
  readonly number: number;
}

const READY = Promise.resolve();
const NO_SUBSCRIPTION = { ready: READY, close: () => {} };

/**
 * The bus within one process.
 *
 * Notifications are delivered in a microtask, not on the publisher's stack: a publisher never runs subscribers' code, a
 * handler that publishes cannot overtake earlier notifications, and no code can rely on a call order that a bus between
 * processes could not keep.
 * @example
 * const mailroom = await Mailroom.open({ swarm, store, bus: createLocalBus() });
 */
export function createLocalBus(options: LocalBusOptions = {}): Bus {
  const onError = options.onError ?? warn;
  const channels = new Map<string, Set<Subscription>>();
  let pending: Pending[] = [];
  let published = 0;
  let closed = false;

  function deliver(): void {
    // Notifications that handlers publish meanwhile are appended to the same array, so they come last.
    for (let next = 0; next < pending.length; next += 1) {
      const entry = pending[next];
      if (entry !== undefined) hand(entry);
    }
    pending = [];
  }

  function hand({ channel, note, number }: Pending): void {
    // Iterating a Set skips removed members: no call after an unsubscribe.
    for (const subscription of channels.get(channel) ?? []) {
      if (subscription.since >= number) continue;
      try {
        subscription.handler(note);
      } catch (error) {
        report(error, channel);
      }
    }
  }

  function report(error: unknown, channel: string): void {
    try {
      onError(error, channel);
    } catch (failed) {
      // Reporting must not break the delivery to the others either.
      warn(failed, channel);
    }
  }

  return {
    publish(channel, note) {
      if (closed || !channels.has(channel)) return;
      published += 1;
      pending.push({ channel, note, number: published });
      if (pending.length === 1) queueMicrotask(deliver);
    },

    subscribe(channel, handler) {
      if (closed) return NO_SUBSCRIPTION;
      const subscription: Subscription = { handler, since: published };
      const subscriptions = channels.get(channel) ?? new Set<Subscription>();
      channels.set(channel, subscriptions.add(subscription));
      return {
        ready: READY,
        close: () => {
          subscriptions.delete(subscription);
          if (subscriptions.size === 0 && channels.get(channel) === subscriptions) channels.delete(channel);
        },
      };
    },

    async close() {
      closed = true;
      // Earlier notifications are still delivered: their microtask is ahead of this one.
      await Promise.resolve();
      channels.clear();
    },
  };
}

function warn(error: unknown, channel: string): void {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(`a subscriber of "${channel}" threw: ${reason}`, { code: "MAILROOM_BUS_HANDLER" });
}

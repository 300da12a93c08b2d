/** Where a connection is that reconnects by itself: a WebSocket, or a stream over HTTP. */

/**
 * The state of a connection that reconnects by itself.
 *
 * - `connecting`: the attempt with this number since the last loss is running.
 * - `open`: connected. `resumed` is false if the server does not know the earlier session: register agents again.
 * - `waiting`: the connection was lost or refused; the next attempt begins after `delay` milliseconds.
 * - `closed`: finally, because of `close()`, an aborted signal or `error`.
 *
 * `code` is a WebSocket close code, and `reason` says why in words.
 * @example
 * ```ts
 * const onState = (state: ConnectionState) => {
 *   if (state.status === "waiting") console.log(`lost: ${state.reason}; next attempt in ${state.delay} ms`);
 * };
 * ```
 */
export type ConnectionState =
  | { readonly status: "connecting"; readonly attempt: number }
  | { readonly status: "open"; readonly resumed: boolean }
  | {
      readonly status: "waiting";
      readonly attempt: number;
      readonly delay: number;
      readonly code?: number;
      readonly reason: string;
    }
  | { readonly status: "closed"; readonly code?: number; readonly reason: string; readonly error?: unknown };

/** Called with every new state. It must not throw; what it throws is reported as an uncaught error. */
export type StateListener = (state: ConnectionState) => void;

/** A listener's error must not break the connection, nor be lost. */
export function notify(listener: StateListener | undefined, state: ConnectionState): void {
  try {
    listener?.(state);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** Opens WebSockets wherever the client runs. */

/**
 * The used part of a WebSocket: of browsers, of Node 22 or later, or of the package `ws`.
 * @example
 * ```ts
 * const open = (url: string): WebSocketLike => new WebSocket(url);
 * ```
 */
export interface WebSocketLike {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  /** Closes at once, without a handshake. Browsers do not have it. */
  terminate?(): void;
  addEventListener(type: "open", listener: () => void): void;
  addEventListener(
    type: "close",
    listener: (event: { readonly code: number; readonly reason: string }) => void,
  ): void;
  addEventListener(type: "error", listener: (event: object) => void): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
}

/** The largest accepted frame in bytes. Pages of our servers have about 1 MB. */
const MAX_FRAME = 64 * 1024 * 1024;

/**
 * In Node the package `ws`, which says why a server refused a connection, and which Node 20 needs. Bundlers for
 * browsers replace it by an empty file.
 */
export async function openSocket(url: string): Promise<WebSocketLike> {
  if (globalThis.process?.versions?.node !== undefined) {
    const { WebSocket: NodeSocket } = await import("ws");
    if (NodeSocket !== undefined) {
      return new NodeSocket(url, { maxPayload: MAX_FRAME, perMessageDeflate: false });
    }
  }
  return new WebSocket(url);
}

/** The address of MAP on a server. `ws://`, `wss://` and `ws+unix:` addresses stay as they are. */
export function mapAddress(url: string): string {
  return /^wss?[:+]/.test(url) ? url : `${url.replace(/^http/, "ws").replace(/\/+$/, "")}/map`;
}

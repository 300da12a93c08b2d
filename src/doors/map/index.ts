/** MAP over JSON-RPC: sessions, agents, subscriptions and transports. See README.md for what this module promises. */
export { type ConnectionOptions, MapConnection, type Transport } from "./connection.js";
export { type MailOptions, MapServer, type MapServerOptions } from "./server.js";
export { type MapLimits, mapSettings } from "./settings.js";
export { type StreamOptions, serveMapStream } from "./transports/stream.js";
export {
  attachMap,
  createMapUpgrade,
  type MapUpgrade,
  type WebSocketOptions,
} from "./transports/websocket.js";
export { mapUpgrade, type ServedUpgrade } from "./upgrade.js";

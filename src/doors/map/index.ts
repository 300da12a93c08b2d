/** MAP over JSON-RPC: sessions, agents, subscriptions and transports. See README.md for what this module promises. */

export { MapServer, type MapServerOptions } from "./server.js";

export { serveMapStream } from "./transports/stream.js";
export { attachMap } from "./transports/websocket.js";
export { mapUpgrade } from "./upgrade.js";

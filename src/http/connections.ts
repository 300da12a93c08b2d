/** Limits the connections of one address, so that it cannot take those of all others. */
import type { Server } from "node:net";
import { type TrustProxy, trustOf } from "./peer-address.js";

export function limitConnections(server: Pick<Server, "on">, limit: number, trustProxy: TrustProxy): void {
  const isTrusted = trustOf(trustProxy);
  const counts = new Map<string, number>();
  server.on("connection", (socket) => {
    const { remoteAddress: address } = socket;
    // A proxy connects for many clients.
    if (address === undefined || isTrusted(address, 0)) return;
    const count = counts.get(address) ?? 0;
    if (count >= limit) {
      socket.destroy();
      return;
    }
    counts.set(address, count + 1);
    socket.once("close", () => {
      const left = (counts.get(address) ?? 1) - 1;
      if (left > 0) counts.set(address, left);
      else counts.delete(address);
    });
  });
}

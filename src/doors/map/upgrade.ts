/** MAP at `/map` of the server's listener. */
import type { IncomingMessage } from "node:http";
import type { Upgrade, UpgradeRequest } from "../../extension/index.js";
import type { MapServer } from "./server.js";
import { createMapUpgrade } from "./transports/websocket.js";

export interface ServedUpgrade extends Upgrade {
  /** Closes every connection. */
  close(): void;
}

type Caller = Pick<UpgradeRequest, "authenticator" | "address" | "credentialWith">;

export function mapUpgrade(map: MapServer, path = "/map"): ServedUpgrade {
  const accepted = new WeakMap<IncomingMessage, Caller>();
  const upgrade = createMapUpgrade(map, {
    path,
    identify: (credential, request) => {
      const { authenticator, address, credentialWith } = accepted.get(request) ?? {};
      return {
        ...(credential !== undefined && { credential }),
        ...(map.authenticator !== undefined && authenticator !== undefined && { authenticator }),
        ...(address !== undefined && { address }),
        ...(credentialWith !== undefined && { credentialWith }),
      };
    },
  });
  return {
    path,
    accept({ request, socket, head, ...caller }) {
      accepted.set(request, caller);
      upgrade.upgrade(request, socket, head);
    },
    close: () => upgrade.close(),
  };
}

/** A wire that is cut after a given number of bytes, once for each connection. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy extends AsyncDisposable {
  readonly url: string;
  /** How often it cut. */
  cuts(): number;
}

/** `next` says after how many bytes of the answer the next connection is cut; nothing: it is left alone. */
export async function cuttingProxy(target: string, next: () => number | undefined): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let cuts = 0;
  const server = createServer((caller) => {
    const wire = connect(Number(port), hostname);
    let left = next();
    for (const socket of [caller, wire]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        open.delete(socket);
        caller.destroy();
        wire.destroy();
      });
    }
    caller.pipe(wire);
    wire.on("data", (chunk: Buffer) => {
      if (left === undefined || chunk.length < left) {
        caller.write(chunk);
        if (left !== undefined) left -= chunk.length;
        return;
      }
      cuts += 1;
      // What was let through arrives before the end of it does.
      caller.end(chunk.subarray(0, left));
      wire.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    cuts: () => cuts,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

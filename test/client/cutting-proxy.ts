/** A proxy that cuts each connection once, after a given number of bytes. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy extends AsyncDisposable {
  readonly url: string;
  /** Number of cut connections. */
  cuts(): number;
}

/** `next` returns the number of bytes after which to cut the next connection, or undefined to keep it. */
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
      // Flush the forwarded bytes before the end.
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

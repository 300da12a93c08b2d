/** A real server in its own process that is killed and started again behind one address. */
import { writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { folder, type Started, serve } from "../cli/cli.js";

export interface MovingServer extends AsyncDisposable {
  /** Stays the same. Connections are refused while no server is running. */
  readonly url: string;
  readonly cwd: string;
  /** Kills the server with SIGKILL and starts the next one on the same data. */
  restart(): Promise<void>;
}

export async function movingServer(args: readonly string[] = ["--dev"]): Promise<MovingServer> {
  const home = await folder();
  const cwd = home.path;
  await writeFile(join(cwd, "swarms.json"), ASKING_SWARM);
  let server: Started | undefined = await serve(args, { cwd });
  const sockets = new Set<Socket>();
  const proxy = createServer((caller) => {
    caller.on("error", () => {});
    if (server === undefined) return void caller.destroy();
    const wire = connect(Number(new URL(server.url).port), "127.0.0.1");
    for (const [socket, other] of [
      [caller, wire],
      [wire, caller],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  const listen = (at: number) => new Promise<void>((resolve) => proxy.listen(at, "127.0.0.1", resolve));
  await listen(0);
  const { port } = proxy.address() as AddressInfo;
  const stop = async () => {
    const closed = new Promise((resolve) => proxy.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    cwd,
    restart: async () => {
      const old = server;
      server = undefined;
      await Promise.all([old?.[Symbol.asyncDispose](), stop()]);
      server = await serve(args, { cwd });
      await listen(port);
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await server?.[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

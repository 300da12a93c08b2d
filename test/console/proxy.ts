/** A reverse proxy that serves another server below a path, as nginx does with `location /mail/`. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";

export interface PrefixProxy {
  /** With the prefix, without a slash at the end. */
  readonly url: string;
  close(): void;
}

export async function openPrefixProxy(target: string, prefix: string): Promise<PrefixProxy> {
  const { hostname, port } = new URL(target);
  const inside = (path = "") => (path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined);
  const headersOf = (incoming: IncomingMessage) => ({ ...incoming.headers, "x-forwarded-proto": "http" });
  const server = createServer((incoming, outgoing) => {
    const path = inside(incoming.url);
    if (path === undefined) {
      outgoing.writeHead(404).end("outside of the prefix");
      return;
    }
    const passed = request(
      { hostname, port, path, method: incoming.method, headers: headersOf(incoming) },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  server.on("upgrade", (incoming, socket, head) => {
    const path = inside(incoming.url);
    if (path === undefined) {
      socket.destroy();
      return;
    }
    const passed = connect(Number(port), hostname, () => {
      const lines = incoming.rawHeaders.flatMap((name, index) =>
        index % 2 === 0 ? [`${name}: ${incoming.rawHeaders[index + 1]}`] : [],
      );
      passed.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      passed.write(head);
      socket.pipe(passed).pipe(socket);
    });
    for (const end of [socket, passed]) end.on("error", () => [socket, passed].map((each) => each.destroy()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const own = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${own}${prefix}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

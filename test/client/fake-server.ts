/** A server with scripted responses, for answers that a healthy Mailroom never gives. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

export interface FakeServer extends AsyncDisposable {
  readonly url: string;
  readonly seen: readonly Seen[];
}

export type Handler = (request: Seen, response: ServerResponse) => void;

/** Routes are `GET /path`, without the query. */
export async function fakeServer(routes: Readonly<Record<string, Handler>>): Promise<FakeServer> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString("utf8");
    const { method = "", url = "" } = request;
    const call = {
      method,
      path: url,
      headers: request.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
    seen.push(call);
    const handler = routes[`${method} ${url.replace(/\?.*$/, "")}`];
    if (handler === undefined) json(response, 404, { detail: "Not Found" });
    else handler(call, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

export function openStream(response: ServerResponse, headers: Record<string, string> = {}): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", ...headers });
}

export function sse(event: string, data: unknown, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\r\n`}event: ${event}\r\ndata: ${JSON.stringify(data)}\r\n\r\n`;
}

/** A peer with a scripted self-description; the test answers every other request. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { TestServer } from "./servers.js";

export interface MalformedPeer {
  readonly url: string;
  /** Counts the requests with this text in their path. */
  count(part: string): number;
}

export async function openMalformedPeer(
  name: string,
  capabilities: readonly string[],
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  { keepAlive = true } = {},
): Promise<MalformedPeer> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    request.resume();
    if (!keepAlive) response.setHeader("connection", "close");
    if (request.url === "/") response.end(JSON.stringify({ version: "1.2", swarm: name, capabilities }));
    else if (request.url === "/health") response.end("{}");
    else answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, count: (part) => asked.filter((one) => one.includes(part)).length };
}

/** Registers the peer like an admin, with a token that the peer ignores. */
export async function register(server: TestServer, name: string, baseUrl: string): Promise<void> {
  await server.federation.registry.register({ name, baseUrl, authToken: "x", volatile: true });
}

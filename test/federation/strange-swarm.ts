/** A swarm that is not ours: it describes itself as it is told to, and what else it is asked is the test's business. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { House } from "./house.js";

export interface StrangeSwarm {
  readonly url: string;
  /** How many requests had this in their path. */
  count(part: string): number;
}

export async function openStrangeSwarm(
  name: string,
  capabilities: readonly string[],
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  { keepAlive = true } = {},
): Promise<StrangeSwarm> {
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

/** As an admin would, with a token that the strange swarm does not look at. */
export async function register(house: House, name: string, baseUrl: string): Promise<void> {
  await house.federation.registry.register({ name, baseUrl, authToken: "x", volatile: true });
}

/** For tests with real processes and real connections. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { systemClock } from "../../src/library/clock.js";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import type { MeshRequest, MeshResponse } from "../../src/mesh/wire/handler.js";
import { listen } from "../../src/mesh/wire/listener.js";
import {
  createGuard,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
} from "../../src/net/index.js";

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** A client that may call this machine. */
export function localClient(options: Partial<HttpClientOptions> = {}): HttpClient {
  return createHttpClient({
    clock: systemClock,
    guard: createGuard({ allow: ["loopback"] }),
    ...options,
  });
}

export interface TlsServer extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  /** The authority that vouches for it. */
  readonly ca: string;
  /** One that trusts the authority, and ends with the server. */
  client(options?: Partial<HttpClientOptions>): HttpClient;
}

/** What an agent listens with, on a port of its own. */
export async function serveTls(handle: (request: MeshRequest) => Promise<MeshResponse>): Promise<TlsServer> {
  const directory = await mkdtemp(join(tmpdir(), "mesh-tls-"));
  const files = await makeDevCertificates(directory, Date.now());
  const [ca, cert, key] = await Promise.all([
    readFile(files.ca, "utf8"),
    readFile(files.cert, "utf8"),
    readFile(files.key, "utf8"),
  ]);
  await rm(directory, { recursive: true });
  const listener = await listen({ handle, host: "localhost", port: 0, cert, key });
  const clients: HttpClient[] = [];
  return {
    origin: `https://localhost:${listener.port}`,
    port: listener.port,
    ca,
    client: (options) => {
      const client = localClient({ tls: { extraCa: ca }, ...options });
      clients.push(client);
      return client;
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) await client.close();
      await listener.close();
    },
  };
}

/** Asks again until the answer is as it should be; the test's own time limit ends it otherwise. */
export async function eventually(ask: () => Promise<unknown>, expected: unknown): Promise<void> {
  for (;;) {
    const answer = await ask();
    try {
      expect(answer).toEqual(expected);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}

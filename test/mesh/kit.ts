/** For tests with real processes and real connections. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { systemClock } from "../../src/base/index.js";
import type { MeshRequest, MeshResponse } from "../../src/doors/mesh/handler.js";
import { type ListenerOptions, listen } from "../../src/doors/mesh/listener.js";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import {
  createGuard,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
} from "../../src/net/index.js";

export { freePort } from "../kit/free-port.js";

/** A client that can call this machine. */
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
  /** The CA that issued the certificate. */
  readonly ca: string;
  /** Trusts the CA, and closes with the server. */
  client(options?: Partial<HttpClientOptions>): HttpClient;
}

/** Listens for an agent on its own port. */
export async function serveTls(
  handle: (request: MeshRequest) => Promise<MeshResponse>,
  limits: Pick<ListenerOptions, "maxRequestsPerAddress"> = {},
): Promise<TlsServer> {
  const directory = await mkdtemp(join(tmpdir(), "mesh-tls-"));
  const files = await makeDevCertificates(directory, Date.now());
  const [ca, cert, key] = await Promise.all([
    readFile(files.ca, "utf8"),
    readFile(files.cert, "utf8"),
    readFile(files.key, "utf8"),
  ]);
  await rm(directory, { recursive: true });
  const listener = await listen({ handle, host: "localhost", port: 0, cert, key, ...limits });
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

/** Repeats until the result is as expected; the test's time limit ends it otherwise. */
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

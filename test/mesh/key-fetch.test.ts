/** Which identity claims are trusted, and which addresses are never contacted. */
import { describe, expect, it } from "vitest";
import type { MeshResponse } from "../../src/doors/mesh/handler.js";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { createPeers } from "../../src/mesh/send/peers.js";
import { createGuard, type HttpClient } from "../../src/net/index.js";
import { localClient, serveTls, type TlsServer } from "./kit.js";

const publicKey = keyPairFromSeed(Buffer.alloc(32, 1)).publicKey.text;
const INFO = JSON.stringify({ agent_id: "bob", public_key: publicKey });

const serving = (body: string, status = 200, headers = {}): Promise<TlsServer> =>
  serveTls(async (): Promise<MeshResponse> => ({ status, body, headers }));
const infoOf = (agentId: string, { origin }: { origin: string }, client: HttpClient) =>
  createPeers(client, "alice", Date.now).info(origin, agentId);

describe("a key fetch", () => {
  it("a key fetch accepts the key of the right agent from its endpoint", async () => {
    await using server = await serving(INFO);
    expect(await infoOf("bob", server, server.client())).toEqual({ publicKey });
    expect(await infoOf("carol", server, server.client())).toMatchObject({ unreachable: false });
  });

  it.each([
    "https://localhost:1",
    "https://127.0.0.1:1",
    "https://[::1]:1",
    "https://169.254.169.254",
    "https://10.0.0.1",
    "https://[fd00::1]",
  ])("[ASP-OURS-09] a key fetch never connects to %s unless it is allowed", async (origin) => {
    const client = localClient({ guard: createGuard() });
    expect(await infoOf("bob", { origin }, client)).toMatchObject({
      reason: expect.stringContaining("allow-list"),
    });
    await client.close();
  });

  it("a key fetch follows no redirect", async () => {
    await using server = await serveTls(async ({ path }) =>
      path === "/swarm/info"
        ? { status: 302, body: "", headers: { location: "/elsewhere" } }
        : { status: 200, body: INFO, headers: {} },
    );
    expect(await infoOf("bob", server, server.client())).toMatchObject({
      reason: expect.stringContaining("302"),
    });
  });

  it("a key fetch stops at 64 KiB", async () => {
    await using server = await serving(`${INFO}${" ".repeat(70_000)}`);
    expect(await infoOf("bob", server, server.client())).toMatchObject({
      reason: expect.stringContaining("65536"),
    });
  });

  it("a key fetch times out after five seconds", async () => {
    await using server = await serveTls(() => new Promise(() => undefined));
    const passed: number[] = [];
    const impatient = {
      after: (ms: number, callback: () => void) => {
        const timer = setTimeout(() => {
          passed.push(ms);
          callback();
        }, ms / 50);
        return () => clearTimeout(timer);
      },
    };
    expect(await infoOf("bob", server, server.client({ clock: impatient }))).toMatchObject({
      unreachable: true,
    });
    expect(passed).toEqual([5_000]);
  });
});

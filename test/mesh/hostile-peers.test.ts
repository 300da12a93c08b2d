/** Members and strangers that answer or ask in ways that cost more than they should. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createSecureServer } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createMeshHandler } from "../../src/doors/mesh/handler.js";
import { makeDevCertificates } from "../../src/mesh/dev-ca/files.js";
import { createPeers } from "../../src/mesh/send/peers.js";
import { createGuard } from "../../src/net/index.js";
import { alice, bob, bodyOf, forEachTest, joinBody, mesh, textsAt, tokenOf } from "./harness.js";
import { localClient, serveTls } from "./kit.js";

forEachTest();

describe("[MESH-M-7] hostile references", () => {
  it.each(["constructor", "__proto__", "toString", "hasOwnProperty"])(
    "a reference of type %s is of an unknown type, not an internal error",
    async (type) => {
      const lab = await mesh.swarm(alice, bob);
      const message = alice.message({ swarm_id: lab });
      const references = [{ type }];
      expect((await bob.post("/swarm/message", { ...message, references })).status).toBe(200);
      await expect(
        alice.agent.send({ swarmId: lab, content: "x", extras: { references } }),
      ).rejects.toMatchObject({
        code: "invalid_message",
        message: expect.stringContaining("must be one of"),
      });
    },
  );

  it("requests that end in an internal error count as refused requests of their address", async () => {
    const failing = Object.assign(Object.create(bob.agent), {
      receive: () => Promise.reject(new Error("broken")),
    });
    const handle = createMeshHandler(failing);
    const ask = () =>
      handle({
        method: "POST",
        path: "/swarm/message",
        headers: {},
        body: Buffer.from("{}"),
        address: "::1",
      });
    for (let count = 0; count < 120; count += 1) expect((await ask()).status).toBe(500);
    const last = await ask();
    expect([last.status, bodyOf(last).error?.code]).toEqual([429, "RATE_LIMITED"]);
  });
});

describe("[MESH-M-6] large answers", () => {
  it("the answer to a message is read up to 64 KiB; only a join may be answered with more", async () => {
    const large = JSON.stringify(Array.from({ length: 50_000 }, () => []));
    await using server = await serveTls(async () => ({ status: 200, headers: {}, body: large }));
    const peers = createPeers(server.client(), "alice", Date.now);
    const endpoint = `${server.origin}/swarm`;
    await expect(peers.post(endpoint, "message", {})).rejects.toMatchObject({ code: "response_too_large" });
    expect((await peers.post(endpoint, "join", {})).status).toBe(200);
    expect(await peers.info(endpoint, "bob")).toMatchObject({ unreachable: true });
  });
});

describe("[MESH-M-5] silent members", () => {
  it("hold up a broadcast to others for seconds at most, and later messages not at all", async () => {
    const lab = await mesh.swarm(alice, bob);
    // Before bob in the order of joining.
    const crowd = Array.from({ length: 300 }, (_, index) => ({
      agentId: `a-silent-${index}`,
      endpoint: `https://silent-${index}.example.com/swarm`,
      publicKey: alice.pair.publicKey.text,
      joinedAt: mesh.clock.now(),
    }));
    const { members } = alice.agent.context.view.swarms.get(lab) ?? {};
    if (members === undefined) throw new Error("no swarm");
    const others = [...members];
    members.clear();
    for (const member of crowd) members.set(member.agentId, member);
    for (const [agentId, member] of others) members.set(agentId, member);
    for (const { agentId } of crowd) {
      mesh.foreign.set(`${agentId.slice(2)}.example.com`, () => new Promise(() => undefined));
    }
    const began = mesh.clock.now();
    const arrived = async (text: string) => {
      for (;;) {
        await mesh.answered();
        if ((await textsAt(bob)).includes(text)) return mesh.clock.now() - began;
        if (!mesh.clock.step()) throw new Error(`${text} never arrived`);
      }
    };
    await alice.agent.send({ swarmId: lab, content: "to all" });
    expect(await arrived("to all")).toBeLessThanOrEqual(10_000);
    const before = mesh.clock.now() - began;
    await alice.agent.send({ swarmId: lab, to: "bob", content: "to you" });
    expect(await arrived("to you")).toBe(before);
  });
});

describe("[MESH-M-17] HTTP/2", () => {
  it("reaches a peer that speaks nothing else, and one that speaks HTTP/1.1", async () => {
    await using both = await serveTls(createMeshHandler(bob.agent));
    const http = both.client({ http2: true });
    const peers = createPeers(http, "alice", Date.now);
    expect(await peers.info(`${both.origin}/swarm`, "bob")).toEqual({ publicKey: bob.pair.publicKey.text });
    const version = await versionSeen({ allowHTTP1: false });
    expect(await Promise.all([version({ http2: true }), version({ http2: true })])).toEqual(["2.0", "2.0"]);
    await expect(version({})).rejects.toMatchObject({ name: "NetError" });
  });
});

/** A server that tells the version of the protocol. */
async function versionSeen(options: { readonly allowHTTP1: boolean }) {
  const directory = await mkdtemp(join(tmpdir(), "mesh-h2-"));
  const files = await makeDevCertificates(directory, Date.now());
  const [ca, cert, key] = await Promise.all(
    [files.ca, files.cert, files.key].map((file) => readFile(file, "utf8")),
  );
  await rm(directory, { recursive: true });
  const server = createSecureServer({ ...options, cert, key }, (request, response) => {
    request.resume();
    response.end(request.httpVersion);
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return async (client: { http2?: boolean }) => {
    const http = localClient({ tls: { extraCa: ca ?? "" }, ...client });
    try {
      return (await http.request(`https://localhost:${port}/`, { method: "POST", body: "{}" })).text();
    } finally {
      await http.close();
    }
  };
}

describe("[MESH-M-16] endpoints that are never called", () => {
  it.each([
    "https://127.0.0.1/swarm",
    "https://169.254.169.254/swarm",
    "https://10.0.0.1/swarm",
    "https://[::1]/swarm",
  ])("%s is not admitted in production", async (endpoint) => {
    const guard = createGuard();
    const master = await mesh.agent("mara", {}, undefined, {
      checkUrl: (url) => guard.checkUrl(url)?.message,
    });
    const { id } = await master.agent.create("Lab");
    const token = tokenOf(await master.agent.invite(id));
    const response = await master.post("/swarm/join", joinBody(bob, token, { endpoint }));
    expect([response.status, bodyOf(response).error?.message]).toEqual([
      400,
      "sender.endpoint is not on the public internet",
    ]);
    expect(master.agent.swarm(id).members.size).toBe(1);
  });
});

/** Checklist item 31: what an agent's listener speaks, what it has for everybody, and what for nobody. */
import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, it } from "vitest";
import { createMeshHandler } from "../../src/mesh/wire/handler.js";
import { LOCAL_ROUTES } from "../../src/mesh/wire/local.js";
import { alice, bob, bodyOf, forEachTest, mesh } from "./harness.js";
import { serveTls } from "./kit.js";

forEachTest();

it("[ASP-INFR-02] speaks HTTP/2 and 1.1 over TLS 1.2 or newer, and cuts long bodies off", async () => {
  const lab = await mesh.swarm(alice, bob);
  await using server = await serveTls(createMeshHandler(bob.node));
  const { origin, ca, port } = server;
  const session = connect(origin, { ca });
  const status = await new Promise<unknown>((resolve, reject) => {
    session.on("error", reject);
    session
      .request({ ":path": "/swarm/health" })
      .on("response", (headers) => resolve(headers[":status"]))
      .resume();
  });
  session.close();
  expect(status).toBe(200);

  const http = server.client();
  expect((await http.request(`${origin}/swarm/info`)).status).toBe(200);
  const message = alice.message({ swarm_id: lab });
  const post = (body: string) => http.request(`${origin}/swarm/message`, { method: "POST", body });
  const posted = await post(JSON.stringify(message));
  expect([posted.status, JSON.parse(posted.text())]).toEqual([
    200,
    { status: "queued", message_id: message.message_id },
  ]);
  const long = await post("x".repeat(3 * 1024 * 1024)).then(
    (answer) => answer.status,
    () => "cut off",
  );
  expect([413, "cut off"]).toContain(long);

  // A client that would speak the old versions is turned away by the server, not by its own caution.
  const old = connectTls({
    port,
    host: "localhost",
    ca,
    minVersion: "TLSv1",
    maxVersion: "TLSv1.1",
    ciphers: "DEFAULT@SECLEVEL=0",
  });
  await expect(
    new Promise((resolve, reject) => old.on("secureConnect", resolve).on("error", reject)),
  ).rejects.toMatchObject({ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" });
});

it("[ASP-ENDP-01] 31. health and info need no header", async () => {
  expect(bodyOf(await bob.get("/swarm/health"))).toEqual({
    status: "healthy",
    agent_id: "bob",
    protocol_version: "0.1.0",
    timestamp: new Date(mesh.clock.now()).toISOString(),
    message: null,
  });
  expect(bodyOf(await bob.get("/swarm/info"))).toEqual({
    agent_id: "bob",
    endpoint: bob.endpoint,
    public_key: bob.pair.publicKey.text,
    protocol_version: "0.1.0",
    capabilities: ["message", "system", "notification"],
    metadata: null,
  });
});

it.each(LOCAL_ROUTES.map(({ method, path }) => [method, path] as const))(
  "[ASP-OURS-06] 66. does not have the operator's route %s %s (8.16)",
  async (method, path) => {
    const response = await (method === "GET" ? bob.get(path) : bob.post(path, {}));
    expect([response.status, bodyOf(response).error?.code]).toEqual([404, "NOT_FOUND"]);
  },
);

it("ends although somebody has opened a connection and says nothing", async () => {
  const server = await serveTls(createMeshHandler(bob.node));
  const socket = connectTcp(server.port, "localhost");
  await once(socket, "connect");
  // It is known to the server when a later one is served.
  expect((await server.client().request(`${server.origin}/swarm/health`)).status).toBe(200);
  const ended = once(socket, "close");
  await server[Symbol.asyncDispose]();
  await ended;
});

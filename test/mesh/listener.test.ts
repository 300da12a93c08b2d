/** The protocols of the listener for peers, and its public routes. */
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { createMeshHandler } from "../../src/doors/mesh/handler.js";
import { OPERATOR_ROUTES } from "../../src/doors/mesh/operator-routes.js";
import { withoutTrailingSlashes } from "../../src/mesh/message/endpoint.js";
import { alice, bob, bodyOf, forEachTest, mesh } from "./harness.js";
import { serveTls } from "./kit.js";

forEachTest();

it("[ASP-INFR-02] the listener speaks HTTP/2 and HTTP/1.1 over TLS 1.2 or newer, and truncates long bodies", async () => {
  const lab = await mesh.swarm(alice, bob);
  await using server = await serveTls(createMeshHandler(bob.agent));
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

  // The client would accept older versions, so it is the server that refuses them.
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

it("an address has a limit of requests over all its connections, and one HTTP/2 connection of streams", async () => {
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const served = createMeshHandler(bob.agent);
  const handle = async (request: Parameters<typeof served>[0]) => {
    await answered;
    return served(request);
  };
  await using server = await serveTls(handle, { maxRequestsPerAddress: 3 });
  const sessions = [0, 1].map(() => connect(server.origin, { ca: server.ca }));
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
  });
  await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
  expect(sessions[0]?.remoteSettings.maxConcurrentStreams).toBe(32);
  const ask = async (session: ClientHttp2Session | undefined) => {
    if (session === undefined) throw new Error("no session");
    const stream = session.request({ ":path": "/swarm/health" });
    const [headers] = await once(stream, "response");
    stream.resume();
    await once(stream, "close");
    return headers;
  };
  const first = [ask(sessions[0]), ask(sessions[0]), ask(sessions[0])];
  // Requests of one connection arrive in order, so the fourth is refused, and then one of another connection.
  const refused = await ask(sessions[0]);
  expect(refused).toMatchObject({ ":status": 503, "retry-after": "5" });
  expect(await ask(sessions[1])).toMatchObject({ ":status": 503 });
  answer();
  for (const headers of await Promise.all(first)) expect(headers).toMatchObject({ ":status": 200 });
  expect(await ask(sessions[1])).toMatchObject({ ":status": 200 });
});

it("[ASP-ENDP-01] health and info require no header", async () => {
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

it.each(OPERATOR_ROUTES.map(({ method, path }) => [method, path] as const))(
  "[ASP-OURS-06] the listener for peers does not serve the operator's route %s %s",
  async (method, path) => {
    const response = await (method === "GET" ? bob.get(path) : bob.post(path, {}));
    expect([response.status, bodyOf(response).error?.code]).toEqual([404, "NOT_FOUND"]);
  },
);

it("the listener closes although a client has opened a connection and sends nothing", async () => {
  const server = await serveTls(createMeshHandler(bob.agent));
  const socket = connectTcp(server.port, "localhost");
  await once(socket, "connect");
  // When a later connection is served, the server has accepted this one.
  expect((await server.client().request(`${server.origin}/swarm/health`)).status).toBe(200);
  const ended = once(socket, "close");
  await server[Symbol.asyncDispose]();
  await ended;
});

describe("[MESH-M-1] hostile request targets", () => {
  it("take linear time: 32 requests with 60,000 slashes are answered before the test's time is up", async () => {
    await using server = await serveTls(createMeshHandler(bob.agent));
    const session = connect(server.origin, { ca: server.ca });
    onTestFinished(() => session.destroy());
    const path = `/a${"/".repeat(60_000)}x`;
    const statuses = await Promise.all(Array.from({ length: 32 }, () => statusAt(session, path)));
    expect(new Set(statuses)).toEqual(new Set([404]));
  });

  it("an endpoint of a member that consists of slashes takes linear time", () => {
    expect(withoutTrailingSlashes(`/a${"/".repeat(5_000_000)}x`)).toHaveLength(5_000_003);
    expect(withoutTrailingSlashes("/swarm///")).toBe("/swarm");
    expect(withoutTrailingSlashes("///")).toBe("");
  });

  it.each(["//", "//[", "/%", "/swarm/message%00", "/swarm/../swarm/nothing"])(
    "%s is an unknown route",
    async (target) => {
      await using server = await serveTls(createMeshHandler(bob.agent));
      const session = connect(server.origin, { ca: server.ca });
      onTestFinished(() => session.destroy());
      expect(await statusAt(session, target)).toBe(404);
      expect(await statusAt(session, "/swarm/health/?probe=1")).toBe(200);
    },
  );

  // HTTP/2 refuses these by itself.
  it.each([
    ["https://bob.example.com/swarm/health", 200],
    ["https://bob.example.com/nothing", 404],
    ["http://[", 404],
    ["*", 404],
  ])("%s over HTTP/1.1 is answered with %i", async (target, status) => {
    await using server = await serveTls(createMeshHandler(bob.agent));
    const socket = connectTls({ port: server.port, host: "localhost", ca: server.ca });
    onTestFinished(() => void socket.destroy());
    const method = target === "*" ? "OPTIONS" : "GET";
    socket.write(`${method} ${target} HTTP/1.1\r\nhost: bob.example.com\r\n\r\n`);
    const [data] = await once(socket, "data");
    expect(String(data).split("\r\n")[0]).toContain(`HTTP/1.1 ${status} `);
  });

  it("unknown routes count as refused requests of their address", async () => {
    for (let count = 0; count < 120; count += 1) expect((await bob.get("/nothing")).status).toBe(404);
    const { status, headers } = await bob.get("/nothing");
    expect([status, headers["retry-after"]]).toEqual([429, "60"]);
  });
});

function statusAt(session: ClientHttp2Session, path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": path });
    stream.on("response", (headers) => resolve(headers[":status"]));
    stream.on("error", reject);
    stream.on("close", () => resolve("closed"));
    stream.resume();
  });
}

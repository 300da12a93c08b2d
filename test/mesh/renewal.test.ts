/** Renewing a certificate while the agent runs. */
import { readFileSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { initMesh, makeDevCertificates } from "../../src/mesh/index.js";
import { type Folder, folder, type Started, serve } from "../cli/cli.js";
import { eventually, freePort } from "./kit.js";

// Real servers start slowly on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

let place: Folder;
let server: Started;
let port: number;
let tls: Awaited<ReturnType<typeof makeDevCertificates>>;

beforeEach(async () => {
  place = await folder();
  port = await freePort();
  initMesh({
    directory: place.path,
    agentId: "alice",
    endpoint: `https://localhost:${port}/swarm`,
    dev: true,
  });
  tls = await makeDevCertificates(join(place.path, "tls"), Date.now());
  server = await serve(["--data", ".", "--mesh-listen", `localhost:${port}`], { cwd: place.path });
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await place[Symbol.asyncDispose]();
});

/** The certificate of a new connection, verified against the CA. */
function shown(): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: "localhost", port, ca: readCa(), servername: "localhost" }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

const readCa = () => readFileSync(tls.ca);

async function health(session: ClientHttp2Session): Promise<unknown> {
  const stream = session.request({ ":path": "/swarm/health" });
  let text = "";
  for await (const chunk of stream) text += chunk;
  return JSON.parse(text).status;
}

it("a renewed certificate is served after SIGHUP while open connections continue; an invalid one changes nothing", async () => {
  const before = await shown();
  const session = connectHttp2(`https://localhost:${port}`, { ca: readCa() });
  expect(await health(session)).toBe("healthy");

  await makeDevCertificates(join(place.path, "tls"), Date.now());
  expect(await shown()).toBe(before);
  server.child.kill("SIGHUP");
  await eventually(async () => (await shown()) !== before, true);
  const renewed = await shown();
  expect(await health(session)).toBe("healthy");

  let complaints = "";
  server.child.stderr.on("data", (chunk) => {
    complaints += String(chunk);
  });
  writeFileSync(tls.cert, "no certificate");
  server.child.kill("SIGHUP");
  await eventually(async () => complaints.includes("the old one stays active"), true);
  expect(await shown()).toBe(renewed);
  expect(await health(session)).toBe("healthy");
  session.close();
});

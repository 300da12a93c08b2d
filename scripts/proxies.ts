/**
 * Tests the configurations of deploy/ with real proxies: only names, paths and ports are replaced. Run it by hand after
 * `npm run build`, with nginx or Caddy installed.
 *
 *   npx tsx scripts/proxies.ts nginx|caddy [--program <path>] [--curl <path>]
 *
 * Behind the proxy is one agent of the mesh with its HTTP API; a second one, without a proxy, is its peer. HTTP/3
 * needs a curl and a proxy that support it (`curl --version` names HTTP3, as in Debian 13); otherwise it is reported as
 * skipped.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { Agent } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";
import { keyPairFromSeed } from "../src/mesh/identity/keys.js";
import { makeDevCertificates } from "../src/mesh/index.js";
import { signMessage } from "../src/mesh/message/build.js";
import { type Ask, askByCurl, askByNode, speaksHttp3 } from "./asking.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DEPLOY = join(ROOT, "deploy");
const MAIL_NAME = "mail.localhost";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { program: { type: "string" }, curl: { type: "string", default: "curl" } },
});
const [kind] = positionals;
if (kind !== "nginx" && kind !== "caddy") throw new Error("name the proxy: nginx or caddy");
const program = values.program ?? kind;

const place = mkdtempSync(join(tmpdir(), "mailroom-proxies-"));
const children: ChildProcess[] = [];
const ports = {
  proxy: await freePort(),
  plain: await freePort(),
  mesh: await freePort(),
  main: await freePort(),
  peer: await freePort(),
};
const inner = await makeDevCertificates(join(place, "tls"), Date.now());
const outer = await makeDevCertificates(join(place, "outer"), Date.now(), ["localhost", MAIL_NAME]);
const bundle = join(place, "authorities.pem");
const ask = askByNode(ports.proxy, bundle);
const askHttp3 = askByCurl(values.curl, ports.proxy, bundle);

try {
  const authority = kind === "nginx" ? await startNginx() : await startCaddy();
  writeFileSync(bundle, readFileSync(inner.ca, "utf8") + readFileSync(authority, "utf8"));
  const token = await startAgents();
  await step("answers over HTTP/2 and HTTP/1.1", tryVersions);
  await step("forwards the four routes of the mesh, and no others", () => tryRoutes(ask));
  await step("lets a peer join, and carries messages both ways", tryMesh);
  await step("forwards only signed messages to the inbox", () => trySigned("carol", ask));
  await step("rejects bodies that the mesh would reject", () => tryBodies(ask));
  await step("forwards events as they arrive", () => tryStream(token, ask));
  await step("carries conversations over WebSocket", () => tryWebSocket(token));
  const missing = whatHttp3Lacks();
  const overHttp3 = (what: string, work: () => Promise<void>) =>
    step(`over HTTP/3: ${what}`, missing === undefined ? work : async () => missing);
  await overHttp3("forwards the four routes of the mesh, and no others", () => tryRoutes(askHttp3));
  await overHttp3("lets a peer join, and forwards only signed messages", () => trySigned("dave", askHttp3));
  await overHttp3("rejects bodies that the mesh would reject", () => tryBodies(askHttp3));
  await overHttp3("forwards events as they arrive", () => tryStream(token, askHttp3));
  // Last, because they use up the limits of an address.
  await step("counts joins by client address, whatever the headers say", tryJoinLimit);
  await step("counts failed authentications by client address", tryAuthLimit);
} finally {
  // A killed proxy leaves its workers behind; one that is terminated stops them.
  for (const child of children) child.kill(child.spawnfile === process.execPath ? "SIGKILL" : "SIGTERM");
  rmSync(place, { recursive: true, force: true });
}

async function step(what: string, work: () => Promise<string | undefined> | Promise<void>): Promise<void> {
  const leftOut = await work();
  console.log(leftOut === undefined ? `ok       ${what}` : `skipped  ${what}: ${leftOut}`);
}

// --- the proxies ---------------------------------------------------------------------------------------------------

async function startNginx(): Promise<string> {
  const home = join(place, "nginx");
  cpSync(join(DEPLOY, "nginx"), home, { recursive: true });
  if (!hasHttp3()) {
    cpSync(join(home, "mailroom", "listen-without-http3.conf"), join(home, "mailroom", "listen.conf"));
    rmSync(join(home, "conf.d", "mailroom-http3.conf"));
  }
  for (const folder of ["conf.d", "mailroom"]) {
    for (const file of readdirSync(join(home, folder))) {
      edit(join(home, folder, file), [
        [/agent\.example\.com;/gu, "localhost;"],
        [/mail\.example\.com;/gu, `${MAIL_NAME};`],
        [/\/etc\/letsencrypt\/live\/\S+\/fullchain\.pem/gu, outer.cert],
        [/\/etc\/letsencrypt\/live\/\S+\/privkey\.pem/gu, outer.key],
        [/\/var\/lib\/mailroom\/tls\/dev-ca\.pem/gu, inner.ca],
        [/\b443\b/gu, String(ports.proxy)],
        [/127\.0\.0\.1:8443/gu, `127.0.0.1:${ports.mesh}`],
        [/127\.0\.0\.1:8000/gu, `127.0.0.1:${ports.main}`],
      ]);
    }
  }
  const bodies = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${join(home, name)};`)
    .join(" ");
  // Its workers must be able to write to the folder, which only this user can.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    join(home, "nginx.conf"),
    `${user} daemon off; pid ${home}/pid; error_log stderr warn; events {}
     http { access_log off; ${bodies} include conf.d/*.conf; }`,
  );
  run(program, ["-p", home, "-c", join(home, "nginx.conf")]);
  await reachable(outer.ca);
  return outer.ca;
}

function hasHttp3(): boolean {
  if (kind === "caddy") return true;
  return spawnSync(program, ["-V"], { encoding: "utf8" }).stderr.includes("http_v3_module");
}

async function startCaddy(): Promise<string> {
  const storage = join(place, "caddy");
  mkdirSync(storage);
  const file = join(place, "Caddyfile");
  cpSync(join(DEPLOY, "Caddyfile"), file);
  edit(file, [
    [/agent\.example\.com/gu, "localhost"],
    [/mail\.example\.com/gu, MAIL_NAME],
    [/\/etc\/caddy\/mailroom-ca\.pem/gu, inner.ca],
    [/localhost:8443/gu, `localhost:${ports.mesh}`],
    [/localhost:8000/gu, `localhost:${ports.main}`],
    // Certificates of its own CA: no public CA issues them for local names.
    [
      /^/u,
      `{\n skip_install_trust\n admin off\n http_port ${ports.plain}\n https_port ${ports.proxy}\n storage file_system ${storage}\n}\n`,
    ],
  ]);
  run(program, ["run", "--config", file, "--adapter", "caddyfile"]);
  const root = join(storage, "pki", "authorities", "local", "root.crt");
  await until(async () => existsSync(root));
  await reachable(root);
  return root;
}

function edit(file: string, replacements: readonly (readonly [RegExp, string])[]): void {
  let text = readFileSync(file, "utf8");
  for (const [what, by] of replacements) text = text.replace(what, by);
  writeFileSync(file, text);
}

async function reachable(authority: string): Promise<void> {
  await until(async () => (await ask("/", { ca: authority }).catch(() => undefined)) !== undefined);
}

// --- the agents ----------------------------------------------------------------------------------------------------

async function startAgents(): Promise<string> {
  const swarm = {
    name: "waiting-room",
    version: "1.0.0",
    entrypoint: "desk",
    agents: [
      {
        name: "desk",
        factory: "module:./desk.mjs#agent",
        comm_targets: [],
        enable_entrypoint: true,
        can_complete_tasks: true,
      },
    ],
  };
  // Its turn outlasts every test here, so the streams of its tasks have no end.
  writeFileSync(
    join(place, "desk.mjs"),
    "export const agent = { run: () => new Promise((resolve) => setTimeout(resolve, 600_000)) };",
  );
  writeFileSync(join(place, "swarms.json"), JSON.stringify([swarm]));
  mesh(
    "alice",
    "init",
    "--dev",
    "--agent-id",
    "alice",
    "--endpoint",
    `https://localhost:${ports.proxy}/swarm`,
  );
  mesh("bob", "init", "--dev", "--agent-id", "bob", "--endpoint", `https://localhost:${ports.peer}/swarm`);
  const behind = { MAILROOM_TRUST_PROXY: "1", MAILROOM_MESH_PROXIES: "1" };
  const token = await serve("alice", ports.main, ports.mesh, behind);
  await serve("bob", 0, ports.peer, {});
  return token;
}

function environment(more: Readonly<Record<string, string>> = {}) {
  const tls = { MAILROOM_MESH_CERT: inner.cert, MAILROOM_MESH_KEY: inner.key, MAILROOM_MESH_CA: bundle };
  return { PATH: process.env.PATH ?? "", HOME: place, ...tls, ...more };
}

async function serve(
  agent: string,
  port: number,
  meshPort: number,
  more: Readonly<Record<string, string>>,
): Promise<string> {
  const words = ["server", "--json", "--data", join(place, agent), "--port", String(port)];
  const child = spawn(
    process.execPath,
    [join(ROOT, "bin", "mailroom.js"), ...words, "--mesh-listen", `localhost:${meshPort}`],
    { cwd: place, env: environment(more), stdio: ["ignore", "pipe", "inherit"] },
  );
  children.push(child);
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: child.stdout }).once("line", resolve),
  );
  return JSON.parse(line).admin_token;
}

function mesh(agent: string, ...words: string[]) {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, "bin", "mailroom.js"), "mesh", ...words, "--json", "--data", join(place, agent)],
    { cwd: place, env: environment(), encoding: "utf8" },
  );
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout);
}

// --- checks --------------------------------------------------------------------------------------------------------

async function tryVersions(): Promise<void> {
  const session = connectHttp2(`https://localhost:${ports.proxy}`, { ca: readFileSync(bundle) });
  const stream = session.request({ ":path": "/swarm/info" });
  let text = "";
  for await (const chunk of stream) text += chunk;
  assert.equal(session.alpnProtocol, "h2");
  assert.equal(JSON.parse(text).agent_id, "alice");
  session.close();
  assert.equal(JSON.parse((await ask("/swarm/info")).text).agent_id, "alice");
}

/** The reason why HTTP/3 cannot be tested; `undefined` if it can. */
function whatHttp3Lacks(): string | undefined {
  if (!hasHttp3()) return "this nginx has no http_v3_module";
  return speaksHttp3(values.curl) ? undefined : `${values.curl} does not support HTTP/3`;
}

async function tryRoutes(ask: Ask): Promise<void> {
  assert.equal((await ask("/swarm/health")).status, 200);
  assert.equal(JSON.parse((await ask("/swarm/info")).text).agent_id, "alice");
  for (const path of ["/api/inbox", "/mesh/github", "/swarm/other", "/", "/tasks"]) {
    assert.equal((await ask(path)).status, 404, path);
  }
}

async function tryMesh(): Promise<void> {
  mesh("alice", "create", "--name", "Lab");
  const { invite_token } = mesh("alice", "invite");
  assert.equal(mesh("bob", "join", "--token", invite_token).status, "joined");
  for (const [from, to] of [
    ["alice", "bob"],
    ["bob", "alice"],
  ] as const) {
    const { message_id } = mesh(from, "send", "--to", to, "--message", `hello ${to}`);
    await until(async () => {
      const { messages } = mesh(to, "messages", "--no-mark-read", "--limit", "50");
      return messages.some((one: { message_id: string }) => one.message_id === message_id);
    });
  }
}

/** An agent without a server joins and sends for itself. */
async function trySigned(name: string, ask: Ask): Promise<void> {
  const pair = keyPairFromSeed(randomBytes(32));
  // An address without a listener: mail for it waits.
  const endpoint = "https://localhost:1/swarm";
  const sender = { agent_id: name, endpoint, public_key: pair.publicKey.text };
  const post = async (path: string, body: object) => {
    const { status, text } = await ask(path, { method: "POST", body: JSON.stringify(body) });
    return { status, body: JSON.parse(text) };
  };
  const invite_token = new URL(mesh("alice", "invite").invite_token).searchParams.get("token");
  const joined = await post("/swarm/join", { type: "system", action: "join_request", invite_token, sender });
  assert.equal(joined.status, 200, JSON.stringify(joined.body));

  const draft = {
    message_id: randomUUID(),
    swarm_id: joined.body.swarm_id,
    recipient: "alice",
    type: "message" as const,
    content: `hello of ${name}`,
  };
  const message = signMessage(draft, { agentId: name, endpoint, pair, seals: true }, Date.now());
  assert.equal((await post("/swarm/message", { ...message, content: "forged" })).status, 401);
  assert.deepEqual(await post("/swarm/message", message), {
    status: 200,
    body: { status: "queued", message_id: draft.message_id },
  });
  const { messages } = mesh("alice", "messages", "--no-mark-read", "--limit", "50");
  const contents = messages.map(({ content }: { content: string }) => content);
  assert.ok(contents.includes(draft.content) && !contents.includes("forged"), contents.join("; "));
}

async function tryBodies(ask: Ask): Promise<void> {
  const post = (bytes: number) =>
    ask("/swarm/message", { method: "POST", body: `"${"x".repeat(bytes - 2)}"` }).then(
      ({ status }) => status,
    );
  assert.equal(await post(2 * 1024 * 1024), 400);
  assert.equal(await post(2 * 1024 * 1024 + 1), 413);
}

async function tryJoinLimit(): Promise<void> {
  const join = (n: number, localAddress: string) =>
    ask("/swarm/join", {
      method: "POST",
      body: "{}",
      localAddress,
      headers: { "x-forwarded-for": `203.0.113.${n}` },
    }).then(({ status }) => status);
  const answers: number[] = [];
  for (let n = 0; n < 12; n += 1) answers.push(await join(n, "127.0.0.1"));
  assert.equal(answers[0], 400);
  assert.equal(answers.at(-1), 429);
  assert.equal(await join(13, "127.0.0.2"), 400);
}

async function tryStream(token: string, ask: Ask): Promise<void> {
  const authorization = `Bearer ${token}`;
  const task_id = randomUUID();
  const opened = await ask("/message", {
    site: MAIL_NAME,
    method: "POST",
    body: JSON.stringify({ body: "hello", stream: true, task_id }),
    headers: { authorization, "content-type": "application/json" },
    enough: (text) => text.includes("\r\n\r\n"),
  });
  assert.equal(opened.status, 200);
  assert.match(opened.text, /^event: new_message/u);
  // The task still waits, so its stream had no end: a buffering proxy would have shown nothing.
  const { text } = await ask("/tasks", { site: MAIL_NAME, headers: { authorization } });
  assert.equal(JSON.parse(text)[task_id].is_running, true);
}

async function tryWebSocket(token: string): Promise<void> {
  const socket = new WebSocket(`wss://localhost:${ports.proxy}/map`, {
    agent: new Agent({ ca: readFileSync(bundle), servername: MAIL_NAME }),
    headers: { host: `${MAIL_NAME}:${ports.proxy}`, authorization: `Bearer ${token}` },
  });
  const answer = new Promise<string>((resolve, reject) => {
    socket.once("message", (data) => resolve(String(data)));
    socket.once("error", reject);
  });
  socket.once("open", () => {
    const params = { protocolVersion: 1, participantType: "client" };
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "map/connect", params }));
  });
  assert.equal(JSON.parse(await answer).id, 1);
  socket.close();
}

async function tryAuthLimit(): Promise<void> {
  const guess = (n: number, localAddress: string) =>
    ask("/whoami", {
      site: MAIL_NAME,
      localAddress,
      headers: { authorization: `Bearer guess-${n}`, "x-forwarded-for": `203.0.113.${n}` },
    }).then(({ status }) => status);
  const answers: number[] = [];
  for (let n = 0; n < 25; n += 1) answers.push(await guess(n, "127.0.0.1"));
  assert.equal(answers[0], 401);
  assert.equal(answers.at(-1), 429);
  assert.equal(await guess(99, "127.0.0.2"), 401);
}

// --- tools ---------------------------------------------------------------------------------------------------------

function run(path: string, args: readonly string[]): void {
  const child = spawn(path, args, { stdio: ["ignore", "ignore", "pipe"] });
  let complaints = "";
  child.stderr.on("data", (chunk) => {
    complaints += String(chunk);
  });
  child.once("exit", (code) => {
    if (code !== null && code !== 0) console.error(`${path} ended with ${code}:\n${complaints}`);
  });
  children.push(child);
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 30_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, "no result within 30 s");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Limits of outgoing connections: TLS, redirects, DNS rebinding. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { AgentFunction } from "../../src/engine/agent.js";
import { createAuthority, issueCertificate, type PemPair } from "../../src/mesh/dev-ca/certificate.js";
import { agent } from "../kit/swarms.js";
import { testSwarm } from "./agents.js";
import { introduce, openTestServer, type TestServer, type TestServerOptions } from "./servers.js";
import { until } from "./until.js";

async function open(options: TestServerOptions): Promise<TestServer> {
  const server = await openTestServer(options);
  onTestFinished(() => server.close());
  return server;
}

interface Place {
  readonly port: number;
  readonly url: string;
  /** The requests it received, as `GET /path`. */
  readonly asked: string[];
  cut(): void;
}

/** A scripted server that records its requests. */
async function place(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  where: { readonly tls?: PemPair; readonly host?: string; readonly port?: number } = {},
): Promise<Place> {
  const asked: string[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume();
    answer(request, response);
  };
  const { tls, host = "127.0.0.1" } = where;
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  await new Promise<void>((resolve) => server.listen(where.port ?? 0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const scheme = tls === undefined ? "http" : "https";
  return { port, url: `${scheme}://${host}:${port}`, asked, cut: () => server.closeAllConnections() };
}

/** Answers like a swarm until it receives mail. */
function likeSwarm(name: string, onMail: (response: ServerResponse) => void) {
  return ({ url }: IncomingMessage, response: ServerResponse) => {
    if (url === "/") {
      response.end(JSON.stringify({ version: "1.2", swarm: name, capabilities: ["dedupe"] }));
    } else if (url === "/health") response.end("{}");
    else onMail(response);
  };
}

describe("mail between two swarms over TLS", async () => {
  const authority = await createAuthority(Date.now());
  const stranger = await createAuthority(Date.now());

  async function files(issuedAt: number): Promise<{ readonly cert: string; readonly key: string }> {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-tls-"));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const pair = await issueCertificate(authority, ["127.0.0.1"], issuedAt);
    const paths = { cert: join(directory, "cert.pem"), key: join(directory, "key.pem") };
    writeFileSync(paths.cert, pair.cert);
    writeFileSync(paths.key, pair.key);
    return paths;
  }
  const secure = async (name: string, other: string, ca: string, issuedAt = Date.now()) =>
    await open({
      swarm: testSwarm(name, [other]),
      ca,
      server: { tls: await files(issuedAt) },
      // On a busy machine, a TLS handshake takes longer than a request.
      settings: { failuresToInactive: 1_000, attemptTimeout: 15_000, healthTimeout: 15_000 },
    });

  it("[MAIL-SEC-01] works both ways when each side trusts the other's CA", async () => {
    const alpha = await secure("alpha", "beta", authority.cert);
    const beta = await secure("beta", "alpha", authority.cert);
    await introduce(alpha, beta);
    expect(alpha.url).toMatch(/^https:/);
    const answer = await alpha.mailroom.user("ann").ask("ask clerk@beta: in private");
    expect(answer.response).toBe("clerk@beta: beta says: in private");
  });

  it("[MAIL-SEC-01, MAIL-ERR-04] fails with an expired certificate, and the sender gets the reason", async () => {
    const tenYears = 10 * 365 * 24 * 60 * 60 * 1000;
    const alpha = await secure("alpha", "beta", authority.cert);
    const beta = await secure("beta", "alpha", authority.cert, Date.now() - tenYears);
    await introduce(alpha, beta);
    expect(await alpha.federation.ping("beta")).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/certificate has expired/),
    });
    await alpha.federation.registry.seen("beta", { at: Date.now() });
    const answer = await alpha.mailroom.user("ann").ask("ask clerk@beta: hello");
    expect(answer.response).toMatch(/to swarm 'beta' was not delivered: .*certificate has expired/);
  });

  it("[MAIL-SEC-01, MAIL-ERR-04] fails with a certificate of an untrusted CA, and the sender gets the reason", async () => {
    const alpha = await secure("alpha", "beta", stranger.cert);
    const beta = await secure("beta", "alpha", authority.cert);
    await introduce(alpha, beta);
    expect(await alpha.federation.ping("beta")).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/certificate/),
    });
    const skipped = await alpha.mailroom.user("ann").ask("ask clerk@beta: hello");
    expect(skipped.response).toMatch(/swarm 'beta' is inactive \(never seen\)/);
    // As if it was reachable until its certificate changed.
    await alpha.federation.registry.seen("beta", { at: Date.now() });
    const answer = await alpha.mailroom.user("ann").ask("ask clerk@beta: hello");
    expect(answer.response).toMatch(
      /^alpha: Your message 'Question' to swarm 'beta' was not delivered: .*certificate/,
    );
    expect((await beta.mailroom.store.tasks.list({ limit: 1 })).tasks).toEqual([]);
  });
});

describe("[MAIL-OURS-07] a redirect is not followed", () => {
  it("at registration", async () => {
    const victim = await place((_, response) => response.end('{"version": "1.2", "swarm": "beta"}'));
    const lure = await place((_, response) => response.writeHead(302, { location: victim.url }).end());
    const alpha = await open({ swarm: testSwarm("alpha", ["beta"]) });
    const known = { name: "beta", baseUrl: lure.url, authToken: "s3cret", volatile: true };
    expect(await alpha.federation.registry.register(known)).toMatchObject({ isActive: false, version: null });
    expect(await alpha.federation.ping("beta")).toEqual({ ok: false, reason: "it answered 302" });
    expect(victim.asked).toEqual([]);
  });

  it("by mail, and the sender is notified", async () => {
    const victim = await place((_, response) => response.end("{}"));
    const lure = await place(
      likeSwarm("beta", (response) => response.writeHead(307, { location: `${victim.url}/admin` }).end()),
    );
    const alpha = await open({ swarm: testSwarm("alpha", ["beta"]) });
    const known = { name: "beta", baseUrl: lure.url, authToken: "s3cret", volatile: true };
    await alpha.federation.registry.register(known);
    const answer = await alpha.mailroom.user("ann").ask("ask clerk@beta: hello");
    expect(answer.response).toMatch(/was not delivered: it answered 307/);
    expect(lure.asked).toContain("POST /interswarm/forward");
    expect(victim.asked).toEqual([]);
  });

  it("by discovery", async () => {
    const swarms = [{ swarm_name: "evil", base_url: "https://evil.example" }];
    const victim = await place((_, response) => response.end(JSON.stringify({ swarms })));
    const lure = await place((_, response) =>
      response.writeHead(302, { location: `${victim.url}/swarms` }).end(),
    );
    const alpha = await open({ swarm: seeking(lure.url), settings: { allow: ["loopback"] } });
    const { response } = await alpha.mailroom.user("ann").ask("go");
    expect(response).toBe(`${lure.url}: ERROR: it answered 302`);
    expect(victim.asked).toEqual([]);
    expect(await alpha.federation.registry.proposals()).toEqual([]);
  });
});

/** Its only agent discovers swarms at one address. */
function seeking(url: string) {
  const run: AgentFunction = ({ results: [result] }) => {
    const call =
      result === undefined
        ? { id: "1", name: "discover_swarms", args: { discovery_urls: [url] } }
        : { id: "2", name: "task_complete", args: { finish_message: result.content } };
    return { calls: [call] };
  };
  const boss = agent("boss", { supervisor: true, entrypoint: true, interswarm: true, run });
  return { ...testSwarm("alpha", []), agents: [boss] };
}

describe("[MAIL-OURS-07] a host name that resolves to another address later", async () => {
  const authority = await createAuthority(Date.now());
  const tls = await issueCertificate(authority, ["beta.example"], Date.now());

  /** `beta.example` resolves to one of two addresses of this machine; only the first is allowed. */
  async function rebound() {
    const home = await place(
      likeSwarm("beta", (response) => response.writeHead(500).end()),
      { tls },
    );
    const inside = await place((_, response) => response.end("{}"), {
      tls,
      host: "127.0.0.2",
      port: home.port,
    });
    let address = "127.0.0.1";
    const alpha = await open({
      swarm: testSwarm("alpha", ["beta"]),
      ca: authority.cert,
      settings: { allow: ["127.0.0.1"], failuresToInactive: 1_000 },
      resolve: async () => [{ address, family: 4 }],
    });
    const baseUrl = `https://beta.example:${home.port}`;
    await alpha.federation.registry.register({ name: "beta", baseUrl, authToken: "s3cret", volatile: true });
    return {
      alpha,
      home,
      inside,
      rebind() {
        address = "127.0.0.2";
        home.cut();
      },
    };
  }

  it("gets neither checks nor mail, and the sender is notified", async () => {
    const { alpha, inside, rebind } = await rebound();
    expect(alpha.federation.registry.get("beta")).toMatchObject({ isActive: true, version: "1.2" });
    expect(await alpha.federation.ping("beta")).toMatchObject({ ok: true });
    rebind();
    const reason = /beta\.example resolves to 127\.0\.0\.2, which is .*loopback/;
    await until(async () => {
      const ping = await alpha.federation.ping("beta");
      return (!ping.ok && reason.test(ping.reason)) || undefined;
    }, "the refusal of the new address");
    const answer = await alpha.mailroom.user("ann").ask("ask clerk@beta: hello");
    expect(answer.response).toMatch(reason);
    expect(inside.asked).toEqual([]);
  });

  it("is not called at registration, although this machine may be registered by its own names", async () => {
    const inside = await place(
      likeSwarm("beta", () => {}),
      { tls },
    );
    const alpha = await open({
      swarm: testSwarm("alpha", ["beta"]),
      ca: authority.cert,
      resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    });
    const { registry } = alpha.federation;
    const register = (baseUrl: string) => registry.register({ name: "beta", baseUrl, volatile: true });
    expect(await register(`https://beta.example:${inside.port}`)).toMatchObject({ isActive: false });
    expect(inside.asked).toEqual([]);
    const plain = await place(likeSwarm("beta", () => {}));
    expect(await register(`http://localhost:${plain.port}`)).toMatchObject({ isActive: true });
  });

  it("found by discovery is registered without an admin only if untrusted URLs may reach it", async () => {
    const inside = await place(likeSwarm("local", () => {}));
    const swarms = [
      { swarm_name: "local", base_url: inside.url },
      { swarm_name: "named", base_url: `http://localhost:${inside.port}` },
      { swarm_name: "far", base_url: "https://far.example" },
    ];
    const hub = await place((_, response) => response.end(JSON.stringify({ swarms })));
    const { port } = hub;
    const alpha = await open({
      swarm: seeking(hub.url),
      settings: { allow: [`127.0.0.1:${port}`], discovery: "register" },
      resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    });
    const { response } = await alpha.mailroom.user("ann").ask("go");
    expect(response).toBe(`${hub.url}: registered, without tokens: far`);
    expect(inside.asked).toEqual([]);
  });
});

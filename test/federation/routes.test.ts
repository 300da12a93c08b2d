/** The admin routes for other swarms, called with the client library. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { defaultReference, federationStoreOf } from "../../src/federation/index.js";
import { testSwarm } from "./agents.js";
import { freePort } from "./processes.js";
import { introduce, openTestServer, type TestServer } from "./servers.js";
import { until } from "./until.js";

let alpha: TestServer;
let beta: TestServer;
beforeAll(async () => {
  // Long enough that only the tested action ends a message.
  const settings = { deliveryTimeout: 3_600_000, failuresToInactive: 1_000_000 };
  alpha = await openTestServer({
    swarm: testSwarm("alpha", ["beta", "gone"]),
    settings,
    env: { SWARM_AUTH_TOKEN_DELTA: "secret" },
  });
  beta = await openTestServer({ swarm: testSwarm("beta", ["alpha"]) });
  await introduce(alpha, beta);
});
afterAll(() => Promise.all([alpha.close(), beta.close()]));

const as = (token: string) => new MailClient(alpha.url, { token });
const admin = () => as("admin:root").admin;

describe("pinging a swarm", () => {
  it("returns its status and latency, and is repeatable with its idempotency key", async () => {
    const idempotencyKey = randomUUID();
    const first = await admin().pingSwarm("beta", { idempotencyKey });
    expect(first).toMatchObject({ swarm_name: "beta", ok: true, status: "healthy", reason: null });
    expect(first.latency).toBeGreaterThanOrEqual(0);
    expect(await admin().pingSwarm("beta", { idempotencyKey })).toEqual(first);
  });

  it("that is unknown returns 404", async () => {
    await expect(admin().pingSwarm("nobody")).rejects.toMatchObject({ status: 404, code: "unknown_swarm" });
  });
});

describe("the list of swarms", () => {
  it("shows token references to admins, only names to others, and a token to no caller", async () => {
    const entry = async (token: string) =>
      (await as(token).getSwarms()).find(({ swarm_name }) => swarm_name === "beta");
    expect(await entry("admin:root")).toMatchObject({ volatile: true, auth_ref: null, auth_state: "ready" });
    const seen = await entry("user:ann");
    expect(seen).toMatchObject({ swarm_name: "beta", is_active: true });
    for (const field of ["auth_state", "failures", "last_error", "checks", "waiting", "public_key"])
      expect(Object.keys(seen ?? {})).not.toContain(field);
    expect(JSON.stringify(await entry("admin:root"))).not.toContain("agent:alpha");
  });
});

it("the list of swarms tells admins why a swarm is not reached, and how much mail waits for it", async () => {
  const baseUrl = `http://127.0.0.1:${await freePort()}`;
  await as("admin:root").registerSwarm({ name: "gone", baseUrl, authToken: "x" });
  await alpha.federation.registry.seen("gone", { at: Date.now() });
  const asked = alpha.mailroom.user("ann").ask("ask clerk@gone: are you there?");
  const listed = async () =>
    (await as("admin:root").getSwarms()).find(({ swarm_name }) => swarm_name === "gone");
  await until(async () => {
    const { failures = 0, waiting = 0 } = (await listed()) ?? {};
    return failures > 0 && waiting > 0;
  });
  expect(await listed()).toMatchObject({
    last_error: expect.stringMatching(/./),
    checked_at: expect.any(String),
    checks: expect.arrayContaining([[expect.any(Number), null]]),
    public_key: null,
    waiting: 1,
  });
  await as("admin:root").admin.unregisterSwarm("gone");
  await asked;
});

it("[MAIL-G-8] a server without a public URL lists itself under the URL that the client used", async () => {
  const [own] = await as("user:ann").getSwarms();
  expect(own).toMatchObject({ swarm_name: "alpha", base_url: alpha.url });
});

it("[MAIL-G-14] a swarm registered without a token uses the variable that is set for it", async () => {
  const client = as("admin:root");
  const baseUrl = `http://127.0.0.1:${await freePort()}`;
  const stateOf = async (name: string) =>
    (await client.getSwarms()).find(({ swarm_name }) => swarm_name === name);
  await client.registerSwarm({ name: "delta", baseUrl, volatile: false });
  await client.registerSwarm({ name: "epsilon", baseUrl });
  expect(await stateOf("delta")).toMatchObject({ auth_ref: defaultReference("delta"), auth_state: "ready" });
  expect(await stateOf("epsilon")).toMatchObject({ auth_ref: null, auth_state: "none" });
  for (const name of ["delta", "epsilon"]) await client.admin.unregisterSwarm(name);
});

describe("unregistering a swarm", () => {
  it("fails mail to it at once, and takes effect once", async () => {
    const client = as("admin:root");
    const baseUrl = `http://127.0.0.1:${await freePort()}`;
    await client.registerSwarm({ name: "gone", baseUrl, authToken: "x" });
    // As if it was reachable until a moment ago.
    await alpha.federation.registry.seen("gone", { at: Date.now() });
    const asked = alpha.mailroom.user("ann").ask("ask clerk@gone: still there?");
    const { outbox } = federationStoreOf(alpha.mailroom.store);
    await until(async () => {
      const [waiting] = await outbox.list("federation", { target: "gone", limit: 1 });
      return (waiting?.attempts ?? 0) > 0 || undefined;
    }, "the first attempt");
    const idempotencyKey = randomUUID();
    const receipt = await client.admin.unregisterSwarm("gone", { idempotencyKey });
    expect(receipt).toEqual({ status: "unregistered", swarm_name: "gone" });
    expect((await asked).response).toContain("swarm 'gone' was unregistered");
    expect(await client.admin.unregisterSwarm("gone", { idempotencyKey })).toEqual(receipt);
    await expect(client.admin.unregisterSwarm("gone")).rejects.toMatchObject({ code: "unknown_swarm" });
  });
});

describe("reserved for admins", () => {
  it.each([
    ["unregister a swarm", (client: MailClient) => client.admin.unregisterSwarm("beta")],
    ["ping a swarm", (client: MailClient) => client.admin.pingSwarm("beta")],
    ["list proposals", (client: MailClient) => client.admin.getSwarmProposals()],
    ["accept a proposal", (client: MailClient) => client.admin.acceptSwarmProposal("delta")],
    ["reject a proposal", (client: MailClient) => client.admin.rejectSwarmProposal("delta")],
  ])("%s", async (_, attempt) => {
    for (const token of ["user:ann", "agent:beta", "member:clerk"]) {
      await expect(attempt(as(token))).rejects.toMatchObject({ status: 403, code: "forbidden" });
    }
    expect(alpha.federation.registry.has("beta")).toBe(true);
  });
});

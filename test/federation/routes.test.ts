/** What admins do with other swarms over HTTP, by the client that programs use. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { federationStoreOf } from "../../src/federation/index.js";
import { houseSwarm } from "./agents.js";
import { type House, introduce, openHouse } from "./house.js";
import { freePort } from "./processes.js";
import { until } from "./until.js";

let alpha: House;
let beta: House;
beforeAll(async () => {
  // Long enough that only what is tested here can end a message.
  const settings = { deliveryTime: 3_600_000, failuresToInactive: 1_000_000 };
  alpha = await openHouse({ swarm: houseSwarm("alpha", ["beta", "gone"]), settings });
  beta = await openHouse({ swarm: houseSwarm("beta", ["alpha"]) });
  await introduce(alpha, beta);
});
afterAll(() => Promise.all([alpha.close(), beta.close()]));

const as = (token: string) => new MailClient(alpha.url, { token });
const admin = () => as("admin:root").admin;

describe("pinging a swarm", () => {
  it("tells how it is and how long that took, and is remembered under its key", async () => {
    const idempotencyKey = randomUUID();
    const first = await admin().pingSwarm("beta", { idempotencyKey });
    expect(first).toMatchObject({ swarm_name: "beta", ok: true, status: "healthy", reason: null });
    expect(first.latency).toBeGreaterThanOrEqual(0);
    expect(await admin().pingSwarm("beta", { idempotencyKey })).toEqual(first);
  });

  it("that is not known is 404", async () => {
    await expect(admin().pingSwarm("nobody")).rejects.toMatchObject({ status: 404, code: "unknown_swarm" });
  });
});

describe("the list of swarms", () => {
  it("shows admins where tokens are looked up, others only that the swarm is there, and nobody a token", async () => {
    const entry = async (token: string) =>
      (await as(token).getSwarms()).find(({ swarm_name }) => swarm_name === "beta");
    expect(await entry("admin:root")).toMatchObject({ volatile: true, auth_ref: null, auth_state: "ready" });
    const seen = await entry("user:ann");
    expect(seen).toMatchObject({ swarm_name: "beta", is_active: true });
    expect(Object.keys(seen ?? {})).not.toContain("auth_state");
    expect(JSON.stringify(await entry("admin:root"))).not.toContain("agent:alpha");
  });
});

describe("forgetting a swarm", () => {
  it("gives mail that is on its way there back at once, and does it once", async () => {
    const client = as("admin:root");
    const baseUrl = `http://127.0.0.1:${await freePort()}`;
    await client.registerSwarm({ name: "gone", baseUrl, authToken: "x" });
    // As if it had been there until a moment ago.
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

describe("what nobody but admins may do", () => {
  it.each([
    ["forget a swarm", (client: MailClient) => client.admin.unregisterSwarm("beta")],
    ["ping one", (client: MailClient) => client.admin.pingSwarm("beta")],
    ["see what is proposed", (client: MailClient) => client.admin.getSwarmProposals()],
    ["accept it", (client: MailClient) => client.admin.acceptSwarmProposal("delta")],
    ["reject it", (client: MailClient) => client.admin.rejectSwarmProposal("delta")],
  ])("%s", async (_, attempt) => {
    for (const token of ["user:ann", "agent:beta", "member:clerk"]) {
      await expect(attempt(as(token))).rejects.toMatchObject({ status: 403, code: "forbidden" });
    }
    expect(alpha.federation.registry.has("beta")).toBe(true);
  });
});

import { expect, it, onTestFinished } from "vitest";
import { ScriptedClient } from "../../../test/federation/scripted-client.js";
import { createGuard } from "../../net/index.js";
import { openStore } from "../../store/index.js";
import { VirtualClock } from "../../testing/virtual-clock.js";
import { HealthChecks } from "./health.js";
import { SwarmRegistry } from "./registry.js";

const ROOT = { version: "1.2", swarm: "beta" };
const INTERVAL = 1_000;

async function setUp() {
  const store = await openStore({ path: ":memory:" });
  onTestFinished(() => store.close());
  const client = new ScriptedClient();
  const clock = new VirtualClock();
  const guard = createGuard({ allow: ["loopback"] });
  const registry = new SwarmRegistry({
    store,
    clock,
    client,
    guard,
    env: {},
    local: () => "alpha",
    timeLimit: 100,
  });
  client.answers.set("http://127.0.0.1:9/", { body: ROOT });
  await registry.register({ name: "beta", baseUrl: "http://127.0.0.1:9", volatile: true });
  const returned: string[] = [];
  const checks = new HealthChecks({
    registry,
    client,
    guard,
    clock,
    random: () => 0.5,
    settings: { healthInterval: INTERVAL, healthTimeout: 100, failuresToInactive: 3, successesToActive: 2 },
    onReturn: (name) => returned.push(name),
    report: ({ cause }) => {
      throw cause;
    },
  });
  checks.start();
  onTestFinished(() => checks.stop());
  const round = async (ms = INTERVAL) => {
    clock.advance(ms);
    for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { client, clock, checks, registry, returned, round, isActive: () => registry.get("beta")?.isActive };
}

const HEALTH = "http://127.0.0.1:9/health";

it("[MAIL-REG-03] a swarm becomes inactive after several failures in a row, not after one, and active again on its own", async () => {
  const { client, returned, round, isActive } = await setUp();
  client.answers.set(HEALTH, { body: { status: "degraded" } });
  await round();
  client.answers.delete(HEALTH);
  await round();
  await round();
  expect(isActive()).toBe(true);
  client.answers.set(HEALTH, { body: {} });
  await round();
  client.answers.set(HEALTH, { status: 500 });
  await round();
  await round();
  expect(isActive()).toBe(true);
  await round();
  expect(isActive()).toBe(false);
  client.answers.set(HEALTH, { body: {} });
  await round();
  expect(isActive()).toBe(false);
  expect(returned).toEqual([]);
  await round();
  expect(isActive()).toBe(true);
  expect(returned).toEqual(["beta"]);
});

it("the last health checks of a swarm are kept, failed ones too, and no more than 60", async () => {
  const { client, clock, checks, round } = await setUp();
  client.answers.set(HEALTH, { body: {} });
  await round();
  client.answers.set(HEALTH, { status: 500 });
  await round();
  expect(checks.recordOf("beta").checks).toEqual([
    [clock.now() - INTERVAL, expect.any(Number)],
    [clock.now(), null],
  ]);
  for (let more = 0; more < 70; more++) await round();
  const kept = checks.recordOf("beta").checks;
  expect(kept).toHaveLength(60);
  expect(kept.at(-1)).toEqual([clock.now(), null]);
  expect(checks.recordOf("other").checks).toEqual([]);
});

it("a health check records its latency", async () => {
  const { client, clock, registry, round } = await setUp();
  client.answers.set(HEALTH, { body: {} });
  const { request } = client;
  client.request = async (url) => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    clock.advance(40);
    return request.call(client, url);
  };
  // The first check runs within the first second: here, in the middle of it.
  await round(INTERVAL / 2);
  expect(registry.get("beta")?.latency).toBe(0.04);
});

it("failures at an old address do not count against a new one", async () => {
  const { client, registry, round, isActive } = await setUp();
  const NEW = "http://127.0.0.1:8";
  client.answers.set(`${NEW}/`, { body: ROOT });
  await round(INTERVAL / 2);
  await round();
  // Two checks of the old address have failed, and the third is running when the swarm moves.
  const { request } = client;
  const held: (() => void)[] = [];
  client.request = async (url) => {
    if (String(url) === HEALTH) await new Promise<void>((resolve) => held.push(resolve));
    return request.call(client, url);
  };
  await round();
  expect(held).toHaveLength(1);
  await registry.register({ name: "beta", baseUrl: NEW, volatile: true });
  for (const release of held) release();
  await round(0);
  expect(isActive()).toBe(true);
  // The first failure at the new address does not count as the third.
  await round(INTERVAL / 2);
  expect(client.asked).toContain(`${NEW}/health`);
  expect(isActive()).toBe(true);
});

it("a swarm registered later is checked, and an unregistered one is not", async () => {
  const { client, registry, round } = await setUp();
  client.answers.set("http://127.0.0.1:8/", { body: { version: "1.2", swarm: "gamma" } });
  await registry.register({ name: "gamma", baseUrl: "http://127.0.0.1:8", volatile: true });
  await round();
  expect(client.asked).toContain("http://127.0.0.1:8/health");
  await registry.unregister("gamma");
  client.asked.length = 0;
  await round();
  await round();
  expect(client.asked).toContain(HEALTH);
  expect(client.asked).not.toContain("http://127.0.0.1:8/health");
});

/** Removal of expired rows. */
import { randomUUID } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { federationStoreOf } from "../../src/federation/ports.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { testSwarm } from "./agents.js";
import { openTestServer } from "./servers.js";
import { until } from "./until.js";
import { deliver } from "./wire.js";

it("ids of old messages are removed even by servers that run only for minutes", async () => {
  const clock = new VirtualClock();
  const alpha = await openTestServer({
    swarm: testSwarm("alpha", ["beta"]),
    clock,
    settings: { dedupeWindow: 30_000 },
  });
  onTestFinished(async () => {
    const closed = alpha.close().then(() => true);
    await until(() => {
      clock.advance(10_000);
      return Promise.race([closed, undefined]);
    }, "the end");
  });
  const { received } = federationStoreOf(alpha.mailroom.store).federation;
  const messageId = randomUUID();
  expect((await deliver(alpha.url, "forward", { messageId })).status).toBe(200);
  expect(await received("beta", messageId)).toMatchObject({ messageId });
  clock.advance(120_000);
  await until(async () => (await received("beta", messageId)) === undefined, "the upkeep", 20_000);
});

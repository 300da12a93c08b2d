/** What is removed when nobody will ask for it any more. */
import { randomUUID } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { federationStoreOf } from "../../src/federation/ports.js";
import { VirtualClock } from "../kit/virtual-clock.js";
import { houseSwarm } from "./agents.js";
import { openHouse } from "./house.js";
import { until } from "./until.js";
import { deliver } from "./wire.js";

it("ids of old messages are forgotten by servers that run for minutes only, too", async () => {
  const clock = new VirtualClock();
  const alpha = await openHouse({
    swarm: houseSwarm("alpha", ["beta"]),
    clock,
    settings: { remember: 30_000 },
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

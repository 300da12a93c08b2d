import { expect, it, onTestFinished } from "vitest";
import { ScriptedClient } from "../../test/federation/scripted-client.js";
import { createGuard } from "../net/index.js";
import { openStore } from "../store/index.js";
import { actionContext } from "../testing/action-context.js";
import { VirtualClock } from "../testing/virtual-clock.js";
import { discoverSwarmsAction } from "./actions.js";
import { SwarmRegistry } from "./registry/registry.js";

async function setUp() {
  const store = await openStore({ path: ":memory:" });
  onTestFinished(() => store.close());
  const client = new ScriptedClient();
  const guard = createGuard({});
  const parts = { store, clock: new VirtualClock(), client, guard, env: {}, timeLimit: 100 };
  const registry = new SwarmRegistry({ ...parts, local: () => "alpha" });
  const action = discoverSwarmsAction({ registry, client, guard, policy: "register" });
  const lists = (count: number) =>
    Array.from({ length: count }, (_, at) => {
      const swarms = Array.from({ length: 200 }, (__, index) => {
        const name = `s${at}-${index}`;
        return { name, base_url: `https://${name}.example` };
      });
      client.answers.set(`https://hub${at}.example/swarms`, { body: swarms });
      return `https://hub${at}.example`;
    });
  return { client, registry, action, lists };
}

it("discover_swarms registers found swarms up to a limit and reports when the limit is reached", async () => {
  const { registry, action, lists } = await setUp();
  const context = actionContext();
  const said = await action.run({ discovery_urls: lists(6) }, context);
  expect(registry.list()).toHaveLength(1_000);
  expect(String(said).split("\n").at(-1)).toContain("no new swarms; the limit of 1000 swarms is reached");
});

it("discover_swarms stops when its signal aborts", async () => {
  const { client, registry, action, lists } = await setUp();
  const stop = new AbortController();
  const { request } = client;
  client.request = (url) => {
    if (String(url) === "https://s0-2.example/") stop.abort();
    return request.call(client, url);
  };
  await expect(
    action.run({ discovery_urls: lists(2) }, actionContext({ signal: stop.signal })),
  ).rejects.toThrow();
  expect(registry.list().map(({ name }) => name)).toEqual(["s0-0", "s0-1", "s0-2"]);
});

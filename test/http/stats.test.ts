/** Figures of the server for admins: counted from what happens, kept in memory. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deferred } from "../../src/base/index.js";
import { Quantiles } from "../../src/telemetry/quantiles.js";
import { VirtualClock } from "../../src/testing/index.js";
import { openFeed } from "./feed-reading.js";
import { fieldOf, type Harness, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

const ANN = "user-token-ann";
const ADMIN = "admin-token-root";

let harness: Harness;
let clock: VirtualClock;
beforeEach(async () => {
  clock = new VirtualClock(Date.UTC(2026, 0, 1));
  harness = await startServer({ clock, room: { clock } });
});
afterEach(() => harness.close());

const post = (body: string) => harness.call("/message", { token: ANN, json: { body, task_id: "t" } });

async function column(name: string, step = "1s"): Promise<unknown[]> {
  const { body } = await harness.call(`/admin/stats?step=${step}`, { token: ADMIN });
  const at = [fieldOf(body, "columns")].flat().indexOf(name);
  return [fieldOf(body, "rows")].flat(1).map((row) => fieldOf(row, String(at)));
}

describe("figures", () => {
  it("count what happened in each second and minute", async () => {
    await post("[action] Tokyo");
    clock.advance(1_000);
    await post("[raise]");
    clock.advance(1_000);
    expect(await column("at")).toEqual([Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 1) + 1_000]);
    expect(await column("opened")).toEqual([1, 0]);
    expect(await column("turns")).toEqual([4, 1]);
    expect(await column("failed_turns")).toEqual([0, 1]);
    expect(await column("actions")).toEqual([1, 0]);
    expect(await column("completed")).toEqual([1, 0]);
    const commits = await column("commits");
    expect(Number(commits[0])).toBeGreaterThan(1);
    expect(Number((await column("rss_bytes"))[0])).toBeGreaterThan(1e6);
    expect(await column("running")).toEqual([0, 0]);
    clock.advance(60_000);
    expect(await column("opened", "1m")).toEqual([1]);
    expect(await column("turns", "1m")).toEqual([5]);
    clock.advance(1_000 * 1_000);
    expect(await column("at")).toHaveLength(900);
  });

  it("are in the metrics for Prometheus too: commits, turns by agent, actions, the store and the outbox", async () => {
    await post("[action] Tokyo");
    const { text } = await harness.call("/metrics", { token: ADMIN });
    for (const line of [
      /^mailroom_commit_seconds_count [1-9]/m,
      /^mailroom_commit_seconds_bucket\{le="\+Inf"\} [1-9]/m,
      /^mailroom_turn_seconds_count\{agent="supervisor"\} 2$/m,
      /^mailroom_turn_seconds_count\{agent="weather"\} 2$/m,
      /^mailroom_action_seconds_count\{outcome="succeeded"\} 1$/m,
      /^mailroom_store_bytes \d/m,
      /^mailroom_outbox_waiting 0$/m,
    ])
      expect(text).toMatch(line);
  });

  it("show who wrote to whom", async () => {
    await post("[action] Tokyo");
    const { body } = await harness.call("/admin/traffic", { token: ADMIN });
    expect(body).toMatchObject({ partial: false });
    expect(fieldOf(body, "edges")).toEqual(
      expect.arrayContaining([
        { from: "user", to: "supervisor", type: "request", messages: 1, failed: 0 },
        { from: "supervisor", to: "weather", type: "request", messages: 1, failed: 0 },
        { from: "weather", to: "supervisor", type: "response", messages: 1, failed: 0 },
        { from: "supervisor", to: "user", type: "completion", messages: 1, failed: 0 },
      ]),
    );
    expect(fieldOf(body, "agents")).toMatchObject([
      { name: "supervisor", turns: 2, failed: 0, cost: null },
      { name: "weather", turns: 2 },
    ]);
    clock.advance(16 * 60_000);
    expect((await harness.call("/admin/traffic", { token: ADMIN })).body).toMatchObject({
      agents: [],
      edges: [],
    });
  });

  it("group failures by agent and message, with the entry of the last one", async () => {
    await post("[raise]");
    clock.advance(60_000);
    await harness.call("/message", { token: ANN, json: { body: "[raise]", task_id: "u" } });
    const { body } = await harness.call("/admin/traffic", { token: ADMIN });
    const journal = await harness.call("/tasks/u/journal", { token: ANN });
    const failed = [fieldOf(journal.body, "entries")]
      .flat()
      .find((entry) => fieldOf(entry, "t") === "turn_failed");
    expect(fieldOf(body, "failures")).toEqual([
      {
        agent: "supervisor",
        message: fieldOf(failed, "message"),
        count: 2,
        last: clock.now(),
        key: fieldOf(journal.body, "key"),
        number: fieldOf(failed, "n"),
      },
    ]);
  });

  it("show the mail that waits for each agent", async () => {
    await harness.close();
    const held = deferred<void>();
    harness = await startServer({ room: { swarm: captureSwarm({ hold: () => held.promise }) } });
    const posted = post("[hold] Tokyo");
    const waiting = async () => {
      const { body } = await harness.call("/admin/traffic", { token: ADMIN });
      return [fieldOf(body, "agents")].flat().map((one) => [fieldOf(one, "name"), fieldOf(one, "waiting")]);
    };
    await expect.poll(waiting).toEqual([
      ["supervisor", 0],
      ["weather", 1],
    ]);
    held.resolve();
    await posted;
    expect((await waiting()).map(([, count]) => count)).toEqual([0, 0]);
  });

  it("come with the limits in force and the number of recovered tasks", async () => {
    const { body } = await harness.call("/admin/stats", { token: ADMIN });
    expect(fieldOf(body, "server")).toEqual({ recovered_tasks: 0 });
    expect(fieldOf(body, "limits")).toMatchObject({ streams: 5_000, turns_running: 1_024 });
    for (const column of Object.keys(Object(fieldOf(body, "limits"))))
      expect(fieldOf(body, "columns")).toContain(column);
  });

  it("are in the feed of admins who ask for them, and for admins only", async () => {
    const admin = await openFeed(harness.url, { token: ADMIN, query: "stats=true" });
    const user = await openFeed(harness.url, { token: ANN, query: "stats=true" });
    try {
      await Promise.all([admin, user].map((feed) => feed.until(({ event }) => event === "counts")));
      clock.advance(1_000);
      const { data } = await admin.until(({ event }) => event === "stats");
      expect([fieldOf(data, "row")].flat()).toHaveLength(29);
      await post("[direct] one");
      clock.advance(1_000);
      await user.until(({ event }) => event === "task");
      expect(user.events.some(({ event }) => event === "stats")).toBe(false);
    } finally {
      admin.close();
      user.close();
    }
    for (const path of ["/admin/stats", "/admin/traffic"])
      expect((await harness.call(path, { token: ANN })).status).toBe(403);
  });
});

it("quantiles are exact to a fifth", () => {
  const quantiles = new Quantiles();
  for (let ms = 1; ms <= 1_000; ms++) quantiles.add(ms);
  for (const [share, exact] of [
    [0.5, 500],
    [0.99, 990],
  ] as const) {
    const found = quantiles.at(share) ?? 0;
    expect(found).toBeGreaterThanOrEqual(exact * 0.99);
    expect(found).toBeLessThanOrEqual(exact * 1.21);
  }
  expect(new Quantiles().at(0.5)).toBeNull();
});

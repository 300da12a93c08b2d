/** `GET /feed`: one stream for everything that a page shows. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defineAgent } from "../../src/swarm/agent.js";
import { defineSwarm } from "../../src/swarm/define.js";
import { VirtualClock } from "../../src/testing/index.js";
import { entryNumbers, lastId, type OpenFeed, openFeed } from "./feed-reading.js";
import { fieldOf, gate, type Harness, type StreamedEvent, startServer } from "./harness.js";
import { chance } from "./killed-server.js";
import { captureSwarm } from "./swarm.js";

const ANN = "user-token-ann";
const BOB = "user-token-bob";
const ADMIN = "admin-token-root";

let harness: Harness;
let feeds: OpenFeed[];
beforeEach(async () => {
  feeds = [];
  harness = await startServer();
});
afterEach(async () => {
  for (const feed of feeds) feed.close();
  await harness.close();
});

async function open(token: string, query = "", lastEventId?: string): Promise<OpenFeed> {
  const feed = await openFeed(harness.url, { token, query, lastEventId });
  feeds.push(feed);
  await feed.until(({ event }) => event === "hello");
  return feed;
}

async function post(token: string, taskId: string, body: string): Promise<string> {
  const reply = await harness.call("/message", { token, json: { body, task_id: taskId } });
  expect(reply.status).toBe(200);
  return String(fieldOf((await harness.call(`/tasks/${taskId}/journal`, { token })).body, "key"));
}

const isTask =
  (taskId: string, status?: string) =>
  ({ event, data }: StreamedEvent): boolean =>
    event === "task" &&
    fieldOf(data, "task_id") === taskId &&
    (status === undefined || fieldOf(data, "status") === status);

async function journalNumbers(token: string, taskId: string): Promise<unknown[]> {
  const { body } = await harness.call(`/tasks/${taskId}/journal`, { token });
  const entries = fieldOf(body, "entries");
  return Array.isArray(entries) ? entries.map((entry) => fieldOf(entry, "n")) : [];
}

describe("the feed", () => {
  it("says hello, then what happens in the caller's tasks", async () => {
    const feed = await open(ANN);
    expect(feed.events[0]).toMatchObject({
      event: "hello",
      id: undefined,
      data: { swarm: "alpha", version: "0.0.0", caller: { role: "user", id: "user-ann" }, dev: false },
    });
    await feed.until(({ event }) => event === "counts");
    const key = await post(ANN, "t", "[action] Tokyo");
    const note = await feed.until(isTask("t", "completed"));
    const numbers = await journalNumbers(ANN, "t");
    expect(note).toMatchObject({
      id: expect.stringMatching(/^[\w-]{22}$/),
      data: { key, number: numbers.length, kinds: expect.arrayContaining(["turn", "completed"]), doing: [] },
    });
    await feed.until(({ event, data }) => event === "counts" && fieldOf(data, "completed") === 1);
    expect(entryNumbers(feed.events)).toEqual([]);
  });

  it("shows users their own tasks, and admins all or their own", async () => {
    const [bob, admin, own] = [await open(BOB), await open(ADMIN), await open(ADMIN, "own=true")];
    const key = await post(ANN, "anns", "[direct] secret");
    await admin.until(isTask("anns", "completed"));
    expect(lastId(admin.events)).toMatch(/^\d+(\.\d+)?$/);
    await post(BOB, "bobs", "[direct] hi");
    await post(ADMIN, "admins", "[direct] hi");
    await bob.until(isTask("bobs", "completed"));
    await own.until(isTask("admins", "completed"));
    for (const feed of [bob, own]) {
      expect(feed.events.some(isTask("anns"))).toBe(false);
      expect(JSON.stringify(feed.events)).not.toContain(key);
    }
    for (const watch of ["anns", key]) {
      await expect(openFeed(harness.url, { token: BOB, query: `watch=${watch}` })).rejects.toThrow("404");
    }
    // Nor by going back to before it happened.
    const again = await open(BOB, `after=${String(fieldOf(bob.events[0]?.data, "cursor"))}`);
    await again.until(isTask("bobs"));
    expect(again.events.some(isTask("anns"))).toBe(false);
  });

  it("has every entry of the watched task, and its partial text", async () => {
    const held = gate();
    await harness.close();
    harness = await startServer({ room: { swarm: captureSwarm({ hold: () => held.opened }) } });
    await harness.call("/message", {
      token: ANN,
      json: { body: "[hold] [talk]", task_id: "t", wait: false },
    });
    const page = await harness.call("/tasks/t/journal", { token: ANN });
    const feed = await open(ANN, `watch=t&after=${String(fieldOf(page.body, "cursor"))}`);
    held.open();
    await feed.until(isTask("t", "completed"));
    expect(feed.events).toContainEqual({
      event: "token",
      id: undefined,
      data: { key: fieldOf(page.body, "key"), agent: "weather", attempt: 1, offset: 0, delta: "sunny" },
    });
    const before = fieldOf(page.body, "entries");
    const known = Array.isArray(before) ? before.map((entry) => fieldOf(entry, "n")) : [];
    const later = entryNumbers(feed.events).filter((n) => !known.includes(n));
    expect([...known, ...later]).toEqual(await journalNumbers(ANN, "t"));
  });

  it("tells of a task that is removed, and of another definition", async () => {
    const feed = await open(ANN);
    const key = await post(ANN, "t", "[direct] one");
    await feed.until(isTask("t", "completed"));
    expect(await harness.mailroom.runtime.remove(key)).toBe(true);
    expect(await feed.until(({ event }) => event === "removed")).toMatchObject({
      data: { key, task_id: "t" },
    });
    await feed.until(({ event, data }) => event === "counts" && fieldOf(data, "completed") === 0);
    const agent = defineAgent({
      name: "supervisor",
      enableEntrypoint: true,
      canCompleteTasks: true,
      run: (mail) => mail.complete("changed"),
    });
    harness.mailroom.runtime.redefine(defineSwarm({ name: "alpha", agents: [agent] }));
    const { data } = await feed.until(({ event }) => event === "swarm");
    expect(data).toEqual({ name: "alpha", definition: harness.mailroom.swarm.hash });
  });

  it("says 'read again' when its cursor is unknown, and refuses what no server has given", async () => {
    await post(ANN, "t", "[direct] one");
    for (const [token, after] of [
      [ADMIN, "999999"],
      [ANN, "A".repeat(22)],
    ] as const) {
      const feed = await open(
        token,
        `after=${after}&watch=${token === ANN ? "t" : ""}`.replace(/&watch=$/, ""),
      );
      const reset = await feed.until(({ event }) => event === "reset");
      expect(reset.id).toBe(fieldOf(reset.data, "cursor"));
      await post(ANN, "t", "[direct] two");
      await feed.until(isTask("t", "completed"));
    }
    for (const [token, after] of [
      [ANN, "17"],
      [ADMIN, "nonsense"],
      [ADMIN, "-1"],
    ] as const) {
      await expect(openFeed(harness.url, { token, query: `after=${after}` })).rejects.toThrow("400");
    }
  });

  it("leaves changes out when there are too many, and says so to those who miss some", async () => {
    const [ann, admin] = [await open(ANN), await open(ADMIN)];
    const many = Array.from({ length: 400 }, (_, n) => harness.mailroom.user("bob").post(`[direct] ${n}`));
    const posted = await Promise.all(many);
    await Promise.all(posted.map(({ outcome }) => outcome));
    await post(ANN, "t", "[direct] one");
    await ann.until(isTask("t", "completed"));
    await admin.until(({ event }) => event === "reset");
    await admin.until(isTask("t", "completed"));
    expect(admin.events.filter(({ event }) => event === "task").length).toBeLessThan(400);
    expect(ann.events.some(({ event }) => event === "reset")).toBe(false);
  });

  it("keeps the cursor of a silent listener fresh", async () => {
    await harness.close();
    const clock = new VirtualClock(Date.now());
    harness = await startServer({ clock, heartbeat: 1_000, room: { clock } });
    const feed = await open(BOB);
    const begin = String(fieldOf(feed.events[0]?.data, "cursor"));
    await post(ANN, "t", "[direct] one");
    let ping: StreamedEvent | undefined;
    const found = feed.until(({ event, id }) => event === "ping" && id !== undefined && id !== begin);
    void found.then((event) => {
      ping = event;
    });
    while (ping === undefined) {
      clock.advance(250);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(entryNumbers(feed.events)).toEqual([]);
    const later = await open(BOB, "", ping.id);
    expect(fieldOf(later.events[0]?.data, "cursor")).toBe(ping.id);
  });
});

describe("a feed that is cut", () => {
  for (const seed of [7, Math.floor(Math.random() * 2 ** 31)]) {
    it(`loses and repeats no entry, and the last note of a task is its state (seed ${seed})`, async () => {
      const random = chance(seed);
      await harness.call("/message", { token: ANN, json: { body: "[direct] begin", task_id: "t" } });
      const page = await harness.call("/tasks/t/journal", { token: ANN });
      const known = Number(fieldOf(page.body, "number"));
      let cursor = String(fieldOf(page.body, "cursor"));
      const seen: StreamedEvent[] = [];
      let over = false;
      const writing = (async () => {
        for (let n = 0; n < 40; n++) {
          const [task, body] = n % 4 === 3 ? ["other", "[direct] aside"] : ["t", "[action] Tokyo"];
          await harness.call("/message", { token: ANN, json: { body, task_id: task } });
        }
        over = true;
      })();
      for (let cuts = 0; !over || cuts < 12; cuts++) {
        const most = Math.floor(random() * 6);
        const feed = await openFeed(harness.url, {
          token: ANN,
          query: `watch=t&after=${cursor}`,
          onData: (open) => {
            if (open.events.length > most) open.close();
          },
        });
        if (random() < 0.3) feed.close();
        // A feed that has nothing to say is not waited for.
        await Promise.race([feed.ended, writing.then(() => feed.close())]);
        seen.push(...feed.events);
        cursor = lastId(seen) ?? cursor;
      }
      await writing;
      const rest = await openFeed(harness.url, { token: ANN, query: `watch=t&after=${cursor}` });
      feeds.push(rest);
      const number = (await journalNumbers(ANN, "t")).length;
      seen.push(...rest.events.splice(0));
      while (entryNumbers([...seen, ...rest.events]).at(-1) !== number) {
        await rest.until(
          ({ event, data }) =>
            event === "entries" && entryNumbers([{ event, data, id: "" }]).includes(number),
        );
      }
      await harness.call("/message", { token: ANN, json: { body: "[direct] end", task_id: "last" } });
      await rest.until(isTask("last", "completed"));
      seen.push(...rest.events);
      const wanted = Array.from({ length: number - known }, (_, index) => known + 1 + index);
      expect(entryNumbers(seen)).toEqual(wanted);
      for (const task of ["t", "other"]) {
        const last = seen.findLast(isTask(task));
        expect(last?.data).toMatchObject({
          status: "completed",
          number: (await journalNumbers(ANN, task)).length,
        });
      }
    });
  }
});

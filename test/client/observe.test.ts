/** The typed client's calls for what a server shows of its tasks. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { type Harness, startServer } from "../http/harness.js";
import { cuttingProxy } from "./cutting-proxy.js";

let harness: Harness;
let ann: MailClient;
let admin: MailClient;
beforeEach(async () => {
  harness = await startServer();
  ann = new MailClient(harness.url, { token: "user-token-ann" });
  admin = new MailClient(harness.url, { token: "admin-token-root" });
});
afterEach(() => harness.close());

it("reads journals, digests, counts, search results and figures", async () => {
  await ann.postMessage("[action] Tokyo", { taskId: "t" });
  const page = await ann.observe.getJournal("t", { before: 1_000_000, limit: 2 });
  expect(page.entries.at(-1)).toMatchObject({ n: page.number, t: "completed" });
  expect(page.more).toBe(true);
  expect(await ann.observe.getDigests(["t", "none"])).toMatchObject([{ task_id: "t", actions: 1 }]);
  expect(await ann.observe.countTasks()).toMatchObject({ completed: 1 });
  expect((await ann.observe.search("tokyo", { limit: 1 })).hits).toHaveLength(1);
  const { observe } = admin.admin;
  expect((await observe.getJournal(page.key)).number).toBe(page.number);
  expect(await observe.getDigests([page.key])).toHaveLength(1);
  expect(await observe.countTasks()).toMatchObject({ completed: 1 });
  expect((await observe.getStats()).step).toBe("1s");
  expect((await observe.getTraffic({ window: 60_000 })).edges.length).toBeGreaterThan(0);
  expect(await observe.getOutbox()).toMatchObject({ items: [] });
});

it("follows the feed, and continues where it was", async () => {
  const leaving = new AbortController();
  const first = ann.observe.feed({ signal: leaving.signal });
  expect((await first.next()).value).toMatchObject({ event: "hello" });
  const posted = ann.postMessage("[direct] one", { taskId: "t" });
  let after: string | undefined;
  for await (const event of first) {
    after = event.id ?? after;
    if (event.event === "task" && event.data.status === "completed") break;
  }
  await posted;
  await ann.postMessage("[direct] two", { taskId: "u" });
  const seen: string[] = [];
  for await (const event of ann.observe.feed({
    ...(after !== undefined && { after }),
    signal: leaving.signal,
  })) {
    if (event.event === "task") seen.push(event.data.task_id);
    if (seen.includes("u")) break;
  }
  expect(seen).toEqual(["u"]);
  leaving.abort();
});

it("resumes the feed after broken connections, and shows its state", async () => {
  const stop = new AbortController();
  const left = [700, 900, 500];
  await using proxy = await cuttingProxy(harness.url, () => left.shift());
  const client = new MailClient(proxy.url, { token: "user-token-ann", retryPause: 1 });
  const states: string[] = [];
  const feed = client.observe.feed({ signal: stop.signal, onState: ({ status }) => states.push(status) });
  expect((await feed.next()).value).toMatchObject({ event: "hello" });
  const ended: string[] = [];
  for (let n = 0; n < 8; n++) await ann.postMessage("[direct] one", { taskId: `t${n}` });
  for await (const { event, data } of feed) {
    if (event === "task" && data.status === "completed") ended.push(data.task_id);
    if (ended.includes("t7")) break;
  }
  expect(new Set(ended)).toEqual(new Set(Array.from({ length: 8 }, (_, n) => `t${n}`)));
  expect(proxy.cuts()).toBeGreaterThan(0);
  expect(states.filter((status) => status === "waiting")).toHaveLength(proxy.cuts());
  expect(states.at(-1)).toBe("closed");
  stop.abort();
});

/** Search in what was said, within what the caller may see. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore } from "../../src/store/index.js";
import { call, fieldOf, type Harness, startServer } from "./harness.js";

const ANN = "user-token-ann";
const BOB = "user-token-bob";
const ADMIN = "admin-token-root";

let harness: Harness;
beforeEach(async () => {
  harness = await startServer();
});
afterEach(() => harness.close());

const post = (token: string, taskId: string, body: string) =>
  harness.call("/message", { token, json: { body, task_id: taskId } });

async function search(token: string, query: string): Promise<unknown[]> {
  const { status, body } = await harness.call(`/search?${query}`, { token });
  expect(status).toBe(200);
  expect(body).toMatchObject({ complete: true, progress: 1 });
  return [fieldOf(body, "hits")].flat();
}

it("finds messages, results and answers of the caller, newest first", async () => {
  await post(ANN, "a", "[direct] The Zürich rollback is ready");
  await post(ANN, "b", "[action] Zurich again");
  const hits = await search(ANN, "q=zurich");
  expect(hits[0]).toMatchObject({ task_id: "b", kind: expect.any(String), n: expect.any(Number) });
  expect(hits).toContainEqual(
    expect.objectContaining({
      task_id: "a",
      kind: "sent",
      snippet: expect.stringContaining("\u0001Zürich\u0002"),
    }),
  );
  // Every word must be there, and the last may be incomplete.
  expect(await search(ANN, "q=zurich+roll")).toMatchObject([{ task_id: "a" }, { task_id: "a" }]);
  expect(await search(ANN, "q=zurich+nowhere")).toEqual([]);
  expect(await search(ANN, "q=tokyo&kind=action_finished&agent=weather")).toMatchObject([
    { task_id: "b", kind: "action_finished", to: "weather" },
  ]);
  expect(await search(ANN, `q=zurich&since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
  expect(await search(ANN, "q=zurich&limit=1")).toHaveLength(1);
});

it("keeps callers apart, and shows admins everything", async () => {
  await post(ANN, "a", "[direct] confidential");
  await post(BOB, "b", "[direct] harmless");
  expect(await search(BOB, "q=confidential")).toEqual([]);
  expect(await search(ADMIN, "q=confidential&own=true")).toEqual([]);
  expect((await search(ADMIN, "q=confidential")).length).toBeGreaterThan(0);
});

it("takes every character as text", async () => {
  await post(ANN, "a", '[direct] NOT "quoted" owner:x OR * NEAR(');
  for (const q of ['"', "NOT", 'quoted" OR "x', "owner:x", "*", "NEAR(", "-", "a^b", "AND", "x'; --"]) {
    const { status } = await harness.call(`/search?q=${encodeURIComponent(q)}`, { token: ANN });
    expect([200, 400], q).toContain(status);
  }
  expect((await search(ANN, "q=NOT+quoted")).length).toBeGreaterThan(0);
  expect((await harness.call("/search?q=%20", { token: ANN })).status).toBe(400);
});

it("finds what came since, and not what was removed", async () => {
  await post(ANN, "a", "[direct] first");
  expect((await search(ANN, "q=first")).length).toBeGreaterThan(0);
  await post(ANN, "b", "[direct] second");
  const [hit] = await search(ANN, "q=second");
  expect(hit).toMatchObject({ task_id: "b" });
  expect(await harness.mailroom.runtime.remove(String(fieldOf(hit, "key")))).toBe(true);
  expect(await search(ANN, "q=second")).toEqual([]);
});

it("builds its file again when it is damaged or gone", async () => {
  const directory = await mkdtemp(join(tmpdir(), "mailroom-search-"));
  try {
    for (const damage of [undefined, "not a database", ""]) {
      if (damage === "") await rm(join(directory, "search.db"));
      else if (damage !== undefined) await writeFile(join(directory, "search.db"), damage);
      const store = await openStore({ directory });
      const server = await startServer({ room: { store } });
      try {
        if (damage === undefined)
          await call(server.url, "/message", {
            token: ANN,
            json: { body: "[direct] lasting", task_id: "t" },
          });
        const { body } = await call(server.url, "/search?q=lasting", { token: ANN });
        expect([fieldOf(body, "hits")].flat().length).toBeGreaterThan(0);
      } finally {
        await server.close();
        await store.close();
      }
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

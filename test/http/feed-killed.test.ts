/** The feed over killed servers: the entries of the watched task are exactly its journal. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import { entryNumbers, lastId, openFeed } from "./feed-reading.js";
import { call, fieldOf, type StreamedEvent } from "./harness.js";
import { chance, Life } from "./killed-server.js";

let child: CompiledChild;
beforeAll(() => {
  child = compileChild("http");
}, 120_000);
afterAll(() => child.remove());

const KILLS = 4;

for (const seed of [3, Math.floor(Math.random() * 2 ** 31)]) {
  it(`a feed whose server is killed resumes where it was (seed ${seed})`, async () => {
    const random = chance(seed);
    const data = mkdtempSync(join(tmpdir(), "mailroom-feed-"));
    let life = new Life(child, data);
    const seen: StreamedEvent[] = [];
    try {
      const url = await life.url;
      const posted = await call(url, "/message", { json: { body: "go", task_id: "t", wait: false } });
      expect(posted.status).toBe(202);
      const page = await call(url, "/tasks/t/journal");
      const known = Number(fieldOf(page.body, "number"));
      let cursor = String(fieldOf(page.body, "cursor"));
      const isEnd = ({ event, data: note }: StreamedEvent) =>
        event === "task" && fieldOf(note, "status") === "completed";
      for (let kills = 0; ; ) {
        const most = kills < KILLS ? 1 + Math.floor(random() * 10) : Number.POSITIVE_INFINITY;
        const feed = await openFeed(await life.url, {
          query: `watch=t&after=${cursor}`,
          onData: (open) => {
            if (open.events.length >= most) void life.kill();
            else if (open.events.some(isEnd)) open.close();
          },
        });
        await feed.ended;
        seen.push(...feed.events);
        cursor = lastId(seen) ?? cursor;
        if (seen.some(isEnd)) break;
        kills++;
        await life.kill();
        life = new Life(child, data);
      }
      await life.kill();
      life = new Life(child, data);
      const whole = await call(await life.url, "/tasks/t/journal");
      const number = Number(fieldOf(whole.body, "number"));
      expect(entryNumbers(seen)).toEqual(Array.from({ length: number - known }, (_, n) => known + 1 + n));
      expect(seen.findLast(({ event }) => event === "task")?.data).toMatchObject({
        status: "completed",
        number,
      });
    } finally {
      await life.kill();
      rmSync(data, { recursive: true, force: true });
    }
  }, 120_000);
}

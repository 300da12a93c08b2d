import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { openSqliteStore } from "../../src/store/index.js";
import { folder, openRoom } from "../kit/rooms.js";
import { agent, swarm } from "../kit/swarms.js";
import { until } from "../kit/waiting.js";

function echo() {
  return swarm([
    agent("echo", {
      supervisor: true,
      entrypoint: true,
      run: ({ messages: [{ id, message }] }) => ({
        calls: [{ id, name: "task_complete", args: { finish_message: message.body } }],
      }),
    }),
  ]);
}

describe("two writers on one file", () => {
  it("[ENGINE-B-8] a stale append of a second writer is refused as stale, and the correct one is written", async () => {
    const directory = folder();
    const first = await openSqliteStore({ directory });
    const second = await openSqliteStore({ directory, lock: false });
    const append = (store: typeof first, journal: string, expected: number) =>
      store.commit({ appends: [{ journal, expected, count: 1, data: "[1]" }] }).then(
        () => "written",
        ({ code }: { code: string }) => code,
      );
    expect(await append(first, "ours", 0)).toBe("written");
    expect(await append(second, "ours", 0)).toBe("stale_append");
    expect(await append(second, "ours", 1)).toBe("written");
    expect(await append(second, "theirs", 0)).toBe("written");
    expect(await append(first, "ours", 1)).toBe("stale_append");
    expect(await append(first, "ours", 2)).toBe("written");
    expect(await append(first, "theirs", 1)).toBe("written");
    for (const store of [first, second]) {
      expect((await store.read("ours")).map(({ first: from, last }) => [from, last])).toEqual([
        [1, 1],
        [2, 2],
        [3, 3],
      ]);
      expect(await store.lastNumber("theirs")).toBe(2);
    }
    await second.close();
    await first.close();
  });
});

describe("a file of another program", () => {
  for (const mode of ["delete", "wal"] as const) {
    it(`[ENGINE-D-1] (journal mode ${mode}) a file of another program is refused and left unchanged, byte for byte`, async () => {
      const directory = folder();
      const path = join(directory, "other.db");
      const theirs = new Database(path);
      theirs.pragma(`journal_mode = ${mode}`);
      theirs.exec("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
      theirs.close();
      const digest = () => createHash("sha256").update(readFileSync(path)).digest("hex");
      const before = digest();
      await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "store_version" });
      expect(digest()).toBe(before);
    });
  }
});

describe("a data directory", () => {
  for (const [name, harm] of [
    ["deleted", (directory: string) => rmSync(directory, { recursive: true })],
    [
      "replaced",
      (directory: string) => {
        renameSync(directory, `${directory}-moved`);
        mkdirSync(directory);
      },
    ],
  ] as const) {
    it(`[ENGINE-D-2] a data directory that is ${name} under a running process ends all writes, and is reported`, async () => {
      const directory = join(folder(), "data");
      const { room, problems } = await openRoom({ swarm: echo(), data: directory });
      const ann = room.user("ann");
      await ann.ask("one");
      harm(directory);
      // The store checks periodically, not at every write.
      const refused = until(async () =>
        ann.ask("more").then(
          () => undefined,
          (error: unknown) => error,
        ),
      );
      expect(await refused).toMatchObject({ code: expect.stringMatching(/^(store_failed|closed)$/) });
      expect(problems.map(({ code }) => code)).toEqual(["store_failed"]);
      expect(problems[0]?.message).toContain(directory);
    });
  }

  it("[ENGINE-C-4] a mailroom whose store has failed releases its data directory, so that the process can open it again", async () => {
    const directory = join(folder(), "data");
    const failures: Error[] = [];
    const { room } = await openRoom({ swarm: echo(), data: directory });
    void room.failed.then((error) => failures.push(error));
    const ann = room.user("ann");
    await ann.ask("one", { taskId: "t" });
    renameSync(directory, `${directory}-moved`);
    await until(async () => {
      const answer = ann.ask("more").then(() => {});
      await answer.catch(() => {});
      return failures.length > 0;
    });
    expect(failures).toMatchObject([{ code: "store_failed" }]);
    renameSync(`${directory}-moved`, directory);
    const again = await until(() => openRoom({ swarm: echo(), data: directory }).catch(() => undefined));
    expect(await again.room.user("ann").ask("two", { taskId: "t" })).toMatchObject({ response: "two" });
  });
});

describe("a damaged file", () => {
  it("[ENGINE-D-5] a damaged file is refused with its name and a remedy", async () => {
    const directory = folder();
    const { room } = await openRoom({ swarm: echo(), data: directory });
    for (let task = 0; task < 20; task++) await room.user("ann").ask("x".repeat(2_000));
    await room.close();
    const path = join(directory, "mailroom.db");
    truncateSync(path, Math.floor(statSync(path).size / 2));
    const refusal = await openSqliteStore({ directory }).then(
      async (store) => {
        await store.close();
        return new Error("it was opened");
      },
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
    expect(refusal).toMatchObject({ code: expect.stringMatching(/^store_(damaged|version)$/) });
    expect(refusal.message).toContain(path);
    expect(refusal.message).toMatch(/damaged/);
    expect(refusal.message).toMatch(/restore a backup/);
  });
});

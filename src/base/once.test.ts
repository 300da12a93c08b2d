import { describe, expect, it } from "vitest";
import { Once, type StoredWrite } from "./once.js";
import { deferred } from "./time.js";

function counting(isConflict?: (error: unknown) => boolean) {
  const stored = new Map<string, StoredWrite<string>>();
  const held = deferred<void>();
  let writes = 0;
  const once = new Once<string, string>({
    recall: async (reference) => `recalled ${reference}`,
    ...(isConflict !== undefined && { isConflict }),
  });
  const run = (digest: string, failing?: () => void) =>
    once.run({
      key: "k",
      digest,
      find: async () => stored.get("k"),
      reused: () => new Error("reused"),
      write: async () => {
        writes += 1;
        await held.promise;
        failing?.();
        stored.set("k", { digest, reference: "first" });
        return "written";
      },
    });
  return { run, stored, release: () => held.resolve(undefined), writes: () => writes };
}

describe("Once", () => {
  it("joins a write in flight, and recalls it later", async () => {
    const { run, release, writes } = counting();
    const [first, second] = [run("a"), run("a")];
    await expect(run("b")).rejects.toThrow("reused");
    release();
    expect(await first).toEqual({ result: "written", replayed: false });
    expect(await second).toEqual({ result: "written", replayed: true });
    expect(await run("a")).toEqual({ result: "recalled first", replayed: true });
    await expect(run("b")).rejects.toThrow("reused");
    expect(writes()).toBe(1);
  });

  it("fails for all who wait, and can be tried again", async () => {
    const { run, release } = counting();
    const fail = () => {
      throw new Error("no room");
    };
    const both = [run("a", fail), run("a", fail)];
    release();
    for (const result of await Promise.allSettled(both)) {
      expect(result).toMatchObject({ status: "rejected", reason: { message: "no room" } });
    }
    expect(await run("a")).toEqual({ result: "written", replayed: false });
  });

  it("recalls the write of another process that was first", async () => {
    const { run, release, stored } = counting((error) => error instanceof RangeError);
    release();
    const conflict = () => {
      stored.set("k", { digest: "a", reference: "other" });
      throw new RangeError("there is one");
    };
    expect(await run("a", conflict)).toEqual({ result: "recalled other", replayed: true });
    stored.clear();
    const unexplained = () => {
      throw new RangeError("something else");
    };
    await expect(run("a", unexplained)).rejects.toThrow("something else");
  });
});

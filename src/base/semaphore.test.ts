import { describe, expect, it } from "vitest";
import { type Release, Semaphore } from "./semaphore.js";
import { deferred } from "./time.js";

describe("Semaphore", () => {
  it("bounds what is in use in all and by key", () => {
    const semaphore = new Semaphore({ limit: 3, perKey: 2 });
    const held = ["a", "a", "b"].map((key) => semaphore.tryAcquire(key));
    expect(held.every((release) => release !== undefined)).toBe(true);
    expect(semaphore.tryAcquire("a")).toBeUndefined();
    expect(semaphore.tryAcquire("c")).toBeUndefined();
    expect([semaphore.inUse, semaphore.inUseBy("a"), semaphore.inUseBy("c")]).toEqual([3, 2, 0]);
  });

  it("gets back what was acquired, once", () => {
    const semaphore = new Semaphore({ limit: 2 });
    const release = semaphore.tryAcquire("a");
    semaphore.tryAcquire("a");
    release?.();
    release?.();
    expect(semaphore.inUse).toBe(1);
  });

  it("weighs", () => {
    const semaphore = new Semaphore({ limit: 10, perKey: 6 });
    const release = semaphore.tryAcquire("a", 6);
    expect(semaphore.tryAcquire("a", 1)).toBeUndefined();
    expect(semaphore.tryAcquire("b", 5)).toBeUndefined();
    release?.();
    expect(semaphore.tryAcquire("b", 5)).toBeDefined();
  });

  it("lets those who wait in, in order, past keys that have all that they may", async () => {
    const semaphore = new Semaphore({ limit: 2, perKey: 1 });
    const order: string[] = [];
    const enter = (name: string, key: string) =>
      semaphore.acquire(key).then((release) => {
        order.push(name);
        return release;
      });
    const first = await enter("a1", "a");
    const second = enter("a2", "a");
    const third = enter("a3", "a");
    const other = await enter("b1", "b");
    const waiting = enter("c1", "c");
    other();
    (await waiting)();
    expect(order).toEqual(["a1", "b1", "c1"]);
    first();
    (await second)();
    (await third)();
    expect(order).toEqual(["a1", "b1", "c1", "a2", "a3"]);
    expect(semaphore.inUse).toBe(0);
  });

  it("forgets those whose signal fires", async () => {
    const semaphore = new Semaphore({ limit: 1 });
    const release = await semaphore.acquire();
    const stop = new AbortController();
    const given = semaphore.acquire("", { signal: stop.signal });
    const next = semaphore.acquire();
    stop.abort(new Error("gone"));
    await expect(given).rejects.toThrow("gone");
    release();
    const entered: Release = await next;
    entered();
    expect(semaphore.inUse).toBe(0);
    await expect(semaphore.acquire("", { signal: stop.signal })).rejects.toThrow("gone");
  });

  it("runs so much work at once, also after a failure", async () => {
    const semaphore = new Semaphore({ limit: 1 });
    const first = deferred<string>();
    const results = [
      semaphore.run(() => first.promise),
      semaphore.run(() => Promise.reject(new Error("failed"))),
      semaphore.run(async () => "last"),
    ];
    expect(semaphore.inUse).toBe(1);
    first.resolve("first");
    expect(await Promise.allSettled(results)).toMatchObject([
      { value: "first" },
      { reason: { message: "failed" } },
      { value: "last" },
    ]);
    expect(semaphore.inUse).toBe(0);
  });
});

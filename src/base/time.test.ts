import { expect, it, vi } from "vitest";
import { deferred, sleep, type Timers } from "./time.js";

/** Runs out when `ring` is called. */
function alarm(): Timers & { ring(): void; readonly set: boolean } {
  let waiting: (() => void) | undefined;
  return {
    after: (_, callback) => {
      waiting = callback;
      return () => {
        waiting = undefined;
      };
    },
    ring: () => waiting?.(),
    get set() {
      return waiting !== undefined;
    },
  };
}

it("sleep resolves when the time is over", async () => {
  const clock = alarm();
  const slept = sleep(clock, 10, new AbortController().signal);
  clock.ring();
  await expect(slept).resolves.toBeUndefined();
});

it("sleep rejects with the signal's reason and cancels its timer", async () => {
  const clock = alarm();
  const stop = new AbortController();
  const slept = sleep(clock, 10, stop.signal);
  stop.abort(new Error("closing"));
  await expect(slept).rejects.toThrow("closing");
  expect(clock.set).toBe(false);
  await expect(sleep(clock, 10, stop.signal)).rejects.toThrow("closing");
  expect(clock.set).toBe(false);
});

it("sleep leaves no listener on the signal", async () => {
  const clock = alarm();
  const { signal } = new AbortController();
  const removed = vi.spyOn(signal, "removeEventListener");
  const slept = sleep(clock, 10, signal);
  clock.ring();
  await slept;
  expect(removed).toHaveBeenCalledOnce();
});

it("deferred is settled from outside", async () => {
  const good = deferred<number>();
  good.resolve(1);
  await expect(good.promise).resolves.toBe(1);
  const bad = deferred<number>();
  bad.reject(new Error("no"));
  await expect(bad.promise).rejects.toThrow("no");
});

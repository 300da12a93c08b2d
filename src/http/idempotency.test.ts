import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MailroomError, systemClock } from "../base/index.js";
import { type FullStore, openStore } from "../store/index.js";
import { Idempotency, type IdempotencyParts, type OnceRequest } from "./idempotency.js";

let store: FullStore;
let parts: IdempotencyParts;
beforeEach(async () => {
  store = await openStore({ path: ":memory:" });
  parts = { state: store.http, store, clock: systemClock };
});
afterEach(() => store.close());

const request = (content: unknown): OnceRequest => ({
  scope: { role: "user", id: "ann", route: "r", key: "k" },
  content,
});

function counting() {
  let writes = 0;
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const keys = new Idempotency<string>(parts, async (reference) =>
    reference.kind === "answer" ? `recalled ${String(reference.body)}` : "?",
  );
  const once = (content: unknown, failing = false) =>
    keys.once(request(content), async (remember) => {
      writes++;
      await held;
      if (failing) throw new MailroomError("overloaded", "no");
      await store.commit({ appends: [], rows: remember({ kind: "answer", status: 200, body: "done" }) });
      return "done";
    });
  return { once, release: () => release(), writes: () => writes };
}

describe("a write with an idempotency key", () => {
  it("is joined while it runs, and replayed later", async () => {
    const { once, release, writes } = counting();
    const [first, second] = [once({ a: 1, b: 2 }), once({ b: 2, a: 1 })];
    await expect(once({ a: 2 })).rejects.toMatchObject({ code: "idempotency_key_reused" });
    release();
    expect(await first).toEqual({ result: "done", replayed: false });
    expect(await second).toEqual({ result: "done", replayed: true });
    expect(await once({ a: 1, b: 2 })).toEqual({ result: "recalled done", replayed: true });
    await expect(once({ a: 2 })).rejects.toMatchObject({ code: "idempotency_key_reused" });
    expect(writes()).toBe(1);
  });

  it("fails for both callers when it fails, and can be retried", async () => {
    const { once, release, writes } = counting();
    const both = [once("x", true), once("x", true)];
    release();
    for (const result of await Promise.allSettled(both)) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "overloaded" } });
    }
    expect(await once("x")).toEqual({ result: "done", replayed: false });
    expect(writes()).toBe(2);
  });
});

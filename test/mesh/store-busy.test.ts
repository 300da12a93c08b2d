import { beforeEach, expect, it, vi } from "vitest";
import { storeBusy } from "../../src/journal/ports.js";
import { alice, bob, bodyOf, forEachTest, mesh } from "./harness.js";

forEachTest();
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob);
});

it("a message that cannot be stored at the moment is refused with 503, and accepted when it is sent again", async () => {
  const message = alice.message({ swarm_id: lab, recipient: "bob", content: "hi" });
  const busy = vi.spyOn(bob.store, "commit");
  // Often enough that refusals would exceed the limit, if they counted against the sender.
  for (let time = 0; time < 50; time++) {
    busy.mockRejectedValueOnce(storeBusy("the store cannot be written at the moment"));
    const refusal = await bob.post("/swarm/message", message);
    expect({ status: refusal.status, retry: refusal.headers["retry-after"] }).toEqual({
      status: 503,
      retry: "1",
    });
    expect(bodyOf(refusal).error?.code).toBe("UNAVAILABLE");
  }
  expect(bob.problems).toEqual([]);
  busy.mockRestore();
  expect(await bob.answer(message)).toBe(200);
  expect(await bob.store.mesh.inbox({ limit: 10 })).toMatchObject([{ content: "hi" }]);
});

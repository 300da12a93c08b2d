/** Rate limits for peers. */
import { beforeEach, expect, it } from "vitest";
import { alice, bob, carol, forEachTest, mesh } from "./harness.js";

forEachTest();
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob, carol);
});

it("[ASP-SECU-06, ASP-ENDP-08] the 61st message of a sender in a minute is refused", async () => {
  for (let index = 0; index < 60; index += 1) {
    expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(200);
  }
  const response = await bob.post("/swarm/message", carol.message({ swarm_id: lab }));
  expect(response.status).toBe(429);
  expect(Number(response.headers["retry-after"])).toBeLessThanOrEqual(60);
  for (const name of ["limit", "remaining", "reset"])
    expect(response.headers[`x-ratelimit-${name}`]).toMatch(/^\d+$/);
  expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
  mesh.clock.jump(61_000);
  expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(200);
});

it("forged messages do not count against the sender they name", async () => {
  const sender = { agent_id: "alice", endpoint: alice.endpoint };
  for (let index = 0; index < 100; index += 1) {
    expect(await bob.answer({ ...carol.message({ swarm_id: lab }), sender })).toBe(401);
  }
  expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
});

it("replayed messages do not count against their sender; they have a separate limit", async () => {
  const message = alice.message({ swarm_id: lab });
  const answers: number[] = [];
  for (let index = 0; index < 62; index += 1) answers.push(await bob.answer(message));
  expect(answers).toEqual([...Array(61).fill(200), 429]);
  expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
});

it("the messages of a sender are also limited in bytes per minute", async () => {
  const content = "x".repeat(60_000);
  const extras = {
    attachments: [{ type: "inline", mime_type: "text/plain", content: "A".repeat(1_000_000) }],
  } as const;
  const answers: number[] = [];
  for (let index = 0; index < 9; index += 1) {
    answers.push(await bob.answer(carol.message({ swarm_id: lab, content, extras })));
  }
  expect(answers).toEqual([...Array(7).fill(200), 429, 429]);
  expect(await bob.answer(alice.message({ swarm_id: lab, content, extras }))).toBe(200);
  mesh.clock.jump(61_000);
  expect(await bob.answer(carol.message({ swarm_id: lab, content, extras }))).toBe(200);
});

it("[ASP-SECU-08] a swarm is limited to a hundred messages a minute", async () => {
  mesh.clock.jump(60_000);
  const answers: number[] = [];
  for (let index = 0; index < 52; index += 1) {
    for (const sender of [alice, carol]) answers.push(await bob.answer(sender.message({ swarm_id: lab })));
  }
  expect(answers).toEqual([...Array(100).fill(200), ...Array(4).fill(429)]);
});

it("[ASP-SECU-07] the eleventh join of an address in an hour is refused", async () => {
  const join = async (address: string) => (await alice.post("/swarm/join", {}, {}, address)).status;
  for (let index = 0; index < 10; index += 1) expect(await join("203.0.113.9")).toBe(400);
  expect(await join("203.0.113.9")).toBe(429);
  expect(await join("203.0.113.10")).toBe(400);
});

it("an address with 120 refused requests in a minute is refused", async () => {
  const post = async (body: unknown, address: string) =>
    (await bob.post("/swarm/message", body, {}, address)).status;
  for (let index = 0; index < 120; index += 1) expect(await post("{", "192.0.2.1")).toBe(400);
  expect(await post(alice.message({ swarm_id: lab }), "192.0.2.1")).toBe(429);
  expect(await post(alice.message({ swarm_id: lab }), "192.0.2.2")).toBe(200);
});

it("an address with too many refused requests cannot cause questions to the master about unknown senders", async () => {
  const answers = new Set<number>();
  for (let index = 0; index < 130; index += 1) {
    const sender = { agent_id: `nobody${index}`, endpoint: carol.endpoint };
    answers.add(await bob.answer({ ...carol.message({ swarm_id: lab }), sender }));
  }
  expect(answers).toContain(429);
});

import { describe, expect, it } from "vitest";
import type { AgentFunction } from "../../src/engine/agent.js";
import { openRoom } from "../kit/rooms.js";
import { agent, swarm } from "../kit/swarms.js";

const LARGE = "x".repeat(20_000);

/** Two agents that write to each other until one of them stops. */
function chatter(hops: number) {
  let hop = 0;
  const answer =
    (target: string, name: string): AgentFunction =>
    () => {
      hop++;
      const call =
        hop >= hops
          ? { name: "task_complete", args: { finish_message: "enough" } }
          : { name, args: { target, subject: `${hop}`, body: `${hop} ${LARGE}` } };
      return { calls: [{ id: `${hop}`, ...call }] };
    };
  return swarm([
    agent("ping", {
      targets: ["pong"],
      supervisor: true,
      entrypoint: true,
      run: answer("pong", "send_request"),
    }),
    agent("pong", { targets: ["ping"], supervisor: true, run: answer("ping", "send_response") }),
  ]);
}

describe("a task that grows", () => {
  it("[ENGINE-C-1] a task that exceeds its size limit fails with that code, and others continue", async () => {
    const { room, problems } = await openRoom({ swarm: chatter(500), limits: { taskBytes: 1_000_000 } });
    const ann = room.user("ann");
    const answer = await ann.ask("go", { taskId: "large" });
    expect(answer).toMatchObject({ status: "failed", error: { code: "too_large" } });
    expect(problems).toEqual([]);
    // It stays failed and can be read.
    expect(await (await ann.requireTask("large")).status()).toBe("failed");
    expect((await room.user("bob").post("go")).opened).toBe(true);
  });

  it("[ENGINE-C-1] a large task has a snapshot in parts of limited size", async () => {
    const { room } = await openRoom({ swarm: chatter(250), limits: { snapshotAfter: 50, cachedTasks: 1 } });
    const ann = room.user("ann");
    const answer = await ann.ask("go", { taskId: "large" });
    expect(answer.status).toBe("completed");
    await ann.ask("something else");
    await ann.ask("and more");
    const key = (await ann.requireTask("large")).key;
    const snapshot = await room.store.readSnapshot(key);
    const sizes = snapshot?.parts.map(({ data }) => data.length) ?? [];
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(4_000_000);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_100_000);
    const history = await (await ann.requireTask("large")).history("pong");
    expect(history.length).toBeGreaterThan(200);
  });
});

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Mailroom, RemoteAgent } from "../../src/library/mailroom.js";
import { openRoom, storedEntries } from "../kit/rooms.js";
import { agent, swarm } from "../kit/swarms.js";
import { loopTurns, until } from "../kit/waiting.js";

/** A desk that asks a helper in another process on request, and completes otherwise. */
function withHelper() {
  return swarm([
    agent("desk", {
      targets: ["helper"],
      supervisor: true,
      entrypoint: true,
      run: ({ messages: [{ id, message }] }) => ({
        calls: [
          message.body.startsWith("ask")
            ? { id, name: "send_request", args: { target: "helper", subject: "?", body: message.body } }
            : { id, name: "task_complete", args: { finish_message: message.body } },
        ],
      }),
    }),
    agent("helper", { targets: ["desk"], remote: true }),
  ]);
}

/** The helper connects and waits for mail until the test ends. */
async function comes(helper: RemoteAgent): Promise<void> {
  const left = new AbortController();
  const next = helper.next({ signal: left.signal });
  onTestFinished(async () => {
    left.abort();
    await next;
  });
  await loopTurns(10);
}

/** The helper is asked in task `t`, and the task completes without it. */
async function askInVain(room: Mailroom): Promise<string> {
  const ann = room.user("ann");
  const { key } = await ann.post("ask for my secret", { taskId: "t" });
  await until(
    async () => (await storedEntries(room.store, key)).filter(({ t }) => t === "sent").length === 2,
  );
  await ann.ask("never mind", { taskId: "t" });
  return key;
}

/** Other tasks replace the idle ones in memory. */
async function pushOut(room: Mailroom): Promise<void> {
  for (let task = 0; task < 3; task++) await room.user("bob").ask("hello");
}

describe("mail that waits for a remote agent", () => {
  it("[ENGINE-B-1] waiting mail brings no outdated state of its task back when the agent connects", async () => {
    const { room, problems } = await openRoom({ swarm: withHelper(), limits: { cachedTasks: 1 } });
    const ann = room.user("ann");
    const key = await askInVain(room);
    await pushOut(room);
    await ann.ask("second", { taskId: "t" });
    await ann.ask("third", { taskId: "t" });
    await pushOut(room);
    await comes(room.remoteAgent("helper"));
    const stored = await storedEntries(room.store, key);
    expect(await room.runtime.read(key, ({ number }) => number)).toBe(stored.length);
    expect(await ann.ask("fourth", { taskId: "t" })).toMatchObject({ response: "fourth" });
    expect(problems).toEqual([]);
  });

  it("[ENGINE-B-1] waiting mail brings no removed task back when the agent connects, and the id is free", async () => {
    const { room, problems } = await openRoom({
      swarm: withHelper(),
      retention: { maxTasks: 0, interval: 1_000_000 },
    });
    const ann = room.user("ann");
    const key = await askInVain(room);
    expect(await room.sweep()).toBe(1);
    await comes(room.remoteAgent("helper"));
    expect(await ann.task("t")).toBeUndefined();
    expect(await room.runtime.read(key, ({ number }) => number)).toBeUndefined();
    expect(await ann.ask("hello", { taskId: "t" })).toMatchObject({ response: "hello" });
    expect(problems).toEqual([]);
  });

  it("[ENGINE-C-5] waiting mail keeps no task in memory that was cancelled before the agent connected", async () => {
    const helper = agent("helper", { supervisor: true, entrypoint: true, remote: true });
    const { room } = await openRoom({ swarm: swarm([helper]), limits: { cachedTasks: 4 } });
    const cancelled = async (count: number) => {
      for (let task = 0; task < count; task++) {
        const body = `${task} ${String.fromCharCode(97 + (task % 26)).repeat(200_000)}`;
        const posted = await room.user("ann").post(body);
        await posted.task.cancel();
      }
    };
    await cancelled(10);
    const before = heapUsed();
    await cancelled(150);
    // 150 messages of 200 kB would be 30 MB.
    expect(heapUsed() - before).toBeLessThan(10_000_000);
  });
});

function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect !== "function") throw new Error("there is no way to collect garbage here");
  collect();
  return process.memoryUsage().heapUsed;
}

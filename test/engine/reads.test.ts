import { describe, expect, it } from "vitest";
import type { AgentFunction, TurnResult } from "../../src/engine/agent.js";
import { complete } from "../kit/answers.js";
import { FakeAgents } from "../kit/fake-agents.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { folder, openRoom } from "../kit/rooms.js";
import { agent, swarm } from "../kit/swarms.js";
import { loopTurns } from "../kit/waiting.js";

function oneDesk() {
  const fakeAgents = new FakeAgents();
  const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
  return { fakeAgents, definition: swarm([boss]) };
}

describe("a reader", () => {
  it("[ENGINE-B-2] a reader does not see a cancellation before it is durable", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, definition } = oneDesk();
    const { room } = await openRoom({ swarm: definition, store });
    const { task } = await room.user("ann").post("go", { taskId: "t" });
    await fakeAgents.next("boss");
    await loopTurns(4);
    disk.hold();
    let durable = false;
    const seen: string[] = [];
    const read = async () => {
      const status = await task.status();
      seen.push(`${durable ? "durable" : "held back"}: ${status}`);
    };
    const cancelled = task.cancel();
    const reads = [read()];
    await loopTurns(4);
    reads.push(read());
    await loopTurns(4);
    durable = true;
    disk.release();
    await cancelled;
    reads.push(read());
    await Promise.all(reads);
    expect(seen).not.toContain("held back: cancelled");
    expect(seen.at(-1)).toBe("durable: cancelled");
  });

  it("[ENGINE-B-2] a reader does not see a cancellation that the store never wrote", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, definition } = oneDesk();
    const { room } = await openRoom({ swarm: definition, store });
    const { task } = await room.user("ann").post("go", { taskId: "t" });
    await fakeAgents.next("boss");
    await loopTurns(4);
    disk.fate = () => "final";
    const cancelled = task.cancel();
    const status = task.status().catch(() => "unknown");
    await expect(cancelled).rejects.toThrow();
    expect(["running", "unknown"]).toContain(await status);
    expect(["running", "unknown"]).toContain(await task.status().catch(() => "unknown"));
  });

  it("a reader does not see a cancellation that the store refused because other rows were written", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, definition } = oneDesk();
    const { room } = await openRoom({ swarm: definition, store });
    const { task, key } = await room.user("ann").post("go", { taskId: "t" });
    await fakeAgents.next("boss");
    await loopTurns(4);
    disk.refuse = ({ appends }) =>
      appends.some(({ data }) => data.includes('"cancelled"')) ? new Error("not this one") : undefined;
    disk.hold();
    const other = store.commit({ appends: [], rows: [{ kind: "journal.sweep" }] }, "result");
    await loopTurns(2);
    // Both go into the next group. There is nothing to retry, so only the rows are written.
    const cancelled = task.cancel();
    const rows = room.runtime.command(key, { type: "retry" }, [{ kind: "journal.sweep" }]);
    const seen = rows.then(() => task.status());
    disk.release();
    await other;
    await expect(cancelled).rejects.toThrow("not this one");
    expect(await seen).toBe("running");
    expect(await task.status()).toBe("running");
  });

  it("[ENGINE-B-2] a reader does not see a message that the store refused", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, definition } = oneDesk();
    const { room } = await openRoom({ swarm: definition, store });
    const ann = room.user("ann");
    const first = await ann.post("one", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    await loopTurns(4);
    disk.refuse = ({ appends }) =>
      appends.some(({ data }) => data.includes("never")) ? new Error("not this one") : undefined;
    const refused = ann.post("never", { taskId: "t" });
    await loopTurns(0);
    const mail = room.runtime.read(first.key, ({ agents }) =>
      agents.get("boss")?.mailbox.map(({ message }) => message.message.body),
    );
    await expect(refused).rejects.toThrow();
    expect(await mail).toEqual(["one"]);
    turn.answer(complete("done"));
  });
});

describe("the history in memory", () => {
  /** Answers that the agent keeps and changes after it returned them. */
  function forgetful(answers: (turn: number) => Partial<TurnResult>) {
    let turn = 0;
    const run = (): TurnResult => {
      turn++;
      const calls = [{ id: `${turn}`, name: "task_complete", args: { finish_message: `${turn}` } }];
      return { calls, ...answers(turn) };
    };
    return swarm([agent("boss", { supervisor: true, entrypoint: true, run })]);
  }

  const plan = ["begin"];
  for (const [name, answers] of [
    [
      "an answer that is changed after it was returned",
      (turn: number) => {
        plan.push(`step ${turn}`);
        return { memo: { plan } };
      },
    ],
    [
      "an answer with undefined fields",
      (turn: number) => {
        // As untyped code would return it.
        const compaction = { upTo: Number.NaN, summary: "all is well" };
        Reflect.set(compaction, "upTo", undefined);
        return turn === 3 ? { compaction } : { memo: { missing: undefined } };
      },
    ],
  ] as const) {
    it(`[ENGINE-B-3] the history of ${name} is the same after a restart`, async () => {
      const data = folder();
      const first = await openRoom({ swarm: forgetful(answers), data });
      for (const body of ["one", "two", "three"]) await first.room.user("ann").ask(body, { taskId: "t" });
      const before = await (await first.room.user("ann").requireTask("t")).history("boss");
      await first.room.close();
      const second = await openRoom({ swarm: forgetful(answers), data });
      const after = await (await second.room.user("ann").requireTask("t")).history("boss");
      expect(before).toEqual(after);
      expect(before.length).toBeGreaterThan(0);
    });
  }

  it("[ENGINE-B-3] the history has the answer as it was returned, not as the agent changed it later", async () => {
    const notes = ["begin"];
    const definition = forgetful((turn) => {
      notes.push(`step ${turn}`);
      return { memo: notes };
    });
    const { room } = await openRoom({ swarm: definition });
    for (const body of ["one", "two"]) await room.user("ann").ask(body, { taskId: "t" });
    const history = await (await room.user("ann").requireTask("t")).history("boss");
    const memos = history.flatMap((item) => (item.kind === "answer" ? [item.memo] : []));
    expect(memos).toEqual([
      ["begin", "step 1"],
      ["begin", "step 1", "step 2"],
    ]);
  });
});

describe("a snapshot that cannot be used", () => {
  const echo = () =>
    swarm([
      agent("echo", {
        supervisor: true,
        entrypoint: true,
        run: ({ messages: [{ id, message }] }) => ({
          calls: [{ id, name: "task_complete", args: { finish_message: message.body } }],
        }),
      }),
    ]);

  for (const [name, data] of [
    ["is cut off", '{"v":1,"state":{"key"'],
    ["is empty", ""],
    ["says something else", '{"hello":"world"}'],
    ["is of another kind", "[[1]]"],
  ] as const) {
    it(`[ENGINE-C-8] a snapshot that ${name} is ignored, and its task is read from the journal`, async () => {
      const directory = folder();
      const first = await openRoom({ swarm: echo(), data: directory, limits: { snapshotAfter: 4 } });
      for (const body of ["one", "two", "three", "four"]) {
        await first.room.user("ann").ask(body, { taskId: "t" });
      }
      const task = await first.room.user("ann").requireTask("t");
      const before = await task.history("echo");
      await loopTurns(20);
      const put = {
        kind: "snapshot.put",
        journal: task.key,
        number: await first.room.store.lastNumber(task.key),
        parts: [{ name: "0", data }],
        kept: [],
      };
      await first.room.store.commit({ appends: [], rows: [{ ...put, ...{ data } }] });
      await first.room.close();
      const { room, problems } = await openRoom({ swarm: echo(), data: directory });
      const ann = room.user("ann");
      const again = await ann.requireTask("t");
      expect(await again.status()).toBe("completed");
      expect(await again.history("echo")).toEqual(before);
      expect(await ann.ask("five", { taskId: "t" })).toMatchObject({ response: "five" });
      // Reported at most once, and nothing else is reported.
      expect([[], [task.key]]).toContainEqual(problems.map((problem) => problem.task));
    });
  }

  it("a running task whose snapshot cannot be used continues after a restart", async () => {
    const directory = folder();
    let begun = () => {};
    const started = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const working = (run: AgentFunction) =>
      swarm([agent("worker", { supervisor: true, entrypoint: true, run })]);
    const first = await openRoom({
      swarm: working(
        ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
            begun();
          }),
      ),
      data: directory,
    });
    const { task } = await first.room.user("ann").post("work", { taskId: "t" });
    await started;
    const { key } = task;
    const put = {
      kind: "snapshot.put",
      journal: key,
      number: await first.room.store.lastNumber(key),
      parts: [{ name: "0", data: '{"v":4}' }],
      kept: [],
    };
    await first.room.store.commit({ appends: [], rows: [put] });
    await first.room.close();
    // Nothing reads the task: it is recovered at the start.
    let seen = (_body: string) => {};
    const again = new Promise<string>((resolve) => {
      seen = resolve;
    });
    const finish: AgentFunction = ({ messages: [{ message }] }) => {
      seen(message.body);
      return { calls: [{ id: "1", name: "task_complete", args: { finish_message: "done" } }] };
    };
    await openRoom({ swarm: working(finish), data: directory });
    expect(await again).toBe("work");
  });
});

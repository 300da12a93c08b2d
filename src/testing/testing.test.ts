import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent, defineSwarm, modelAgent } from "../index.js";
import { openTestMailroom, scriptedModel, seededIds, VirtualClock } from "./index.js";

describe("openTestMailroom", () => {
  const ask = async () => {
    const model = scriptedModel([
      { text: "Let me think.", calls: [{ name: "task_complete", arguments: { finish_message: "42" } }] },
    ]);
    const oracle = defineAgent({
      name: "oracle",
      enableEntrypoint: true,
      canCompleteTasks: true,
      run: modelAgent({ llm: model }),
    });
    const mailroom = await openTestMailroom(defineSwarm({ name: "desk", agents: [oracle] }));
    onTestFinished(async () => {
      await mailroom.close();
    });
    return { answer: await mailroom.user("ann").ask("What is it?"), model };
  };

  it("answers with a scripted model, which records its calls", async () => {
    const { answer, model } = await ask();
    expect(answer).toMatchObject({ status: "completed", response: "42" });
    expect(model.calls).toHaveLength(1);
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain("What is it?");
  });

  it("gives the same ids in every run", async () => {
    expect((await ask()).answer.taskId).toBe((await ask()).answer.taskId);
  });
});

describe("scriptedModel", () => {
  it("rejects a call after its last step", async () => {
    const model = scriptedModel([]);
    await expect(model.doGenerate({ prompt: [] })).rejects.toThrow(/has 0 steps and was called 1 times/);
  });

  it("rejects with the error of a step", async () => {
    const model = scriptedModel([{ error: new Error("overloaded") }]);
    await expect(model.doStream({ prompt: [] })).rejects.toThrow("overloaded");
  });
});

describe("seededIds", () => {
  it("repeats with the same seed and differs with another", () => {
    const first = (seed: number) => seededIds(seed).uuid();
    expect(first(1)).toBe(first(1));
    expect(first(1)).not.toBe(first(2));
  });
});

describe("VirtualClock", () => {
  it("fires timers in the order in which they are due, then in the order in which they were set", () => {
    const clock = new VirtualClock(0);
    const fired: string[] = [];
    clock.after(2, () => fired.push("late"));
    clock.after(1, () => fired.push("first"));
    clock.after(1, () => fired.push("second"));
    clock.after(1, () => fired.push("cancelled"))();
    expect(clock.untilNext).toBe(1);
    clock.advance(1);
    expect(fired).toEqual(["first", "second"]);
    clock.advance(10);
    expect([clock.now(), clock.pending, fired.at(-1)]).toEqual([11, 0, "late"]);
  });

  it("jumps without firing timers", () => {
    const clock = new VirtualClock(0);
    clock.after(1, () => expect.unreachable());
    clock.jump(5);
    expect([clock.now(), clock.pending, clock.untilNext]).toEqual([5, 1, 0]);
  });
});

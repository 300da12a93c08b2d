import { describe, expect, it } from "vitest";
import { act, ask, broadcast } from "../../../test/kit/answers.js";
import { action, office } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";
import { evolve } from "./evolve.js";
import { freeze, thaw } from "./snapshot.js";

describe("snapshots", () => {
  it("thawing restores the frozen state, and the task continues from it", () => {
    const task = new TestTask(office({ actions: [action("dig")] }), { maxSteps: 3 });
    task.turn("boss", broadcast("news"), ask("ann", "dig"));
    task.turn("ann", act("ignore_broadcast"));
    task.turn("ann", act("dig"), act("dig"));
    const thawed = thaw([...freeze(task.state)]);
    expect(thawed).toEqual(task.state);
    if (thawed === undefined) throw new Error("the snapshot was not recognized");
    for (const entry of task.finish("ann")) evolve(thawed, entry);
    expect(thawed).toEqual(task.state);
  });

  it("a thawed state shares no objects with the frozen one", () => {
    const task = new TestTask(office());
    const thawed = thaw([...freeze(task.state)]);
    task.turn("boss", ask("ann", "one"));
    expect(thawed?.number).toBe(2);
    expect(thawed?.agents.get("boss")?.mailbox).toHaveLength(1);
  });

  it("a snapshot of another version is ignored", () => {
    const parts = [...freeze(new TestTask(office()).state)];
    const later = parts.map(({ name, data }) => ({ name, data: data.replace('"v":5', '"v":6') }));
    expect(thaw(parts)).toBeDefined();
    expect(thaw(later)).toBeUndefined();
    expect(thaw([])).toBeUndefined();
  });
});

import { describe, expect, it } from "vitest";
import { act, ask, broadcast, complete, interrupt, respond, wait } from "../../../test/kit/answers.js";
import { action, office } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";
import { evolve, fold } from "./evolve.js";

/** A task with most kinds of entries. */
function eventfulTask(): TestTask {
  const task = new TestTask(office({ actions: [action("dig"), action("sign")], breakpoints: ["sign"] }), {
    maxSteps: 9,
    limits: { taskTimeout: 60_000 },
  });
  task.turn("boss", ask("ann", "dig"), ask("bob", "sign"), broadcast("news"));
  task.turn("ann", act("ignore_broadcast"));
  task.turn("ann", act("dig"), ask("zoe", "hello"));
  task.post("stop", { to: ["ann"], type: "interrupt" });
  task.finish("ann");
  task.turn("bob", act("acknowledge_broadcast"));
  task.turn("bob", act("sign"));
  task.do({ type: "answer_breakpoint", results: { content: "signed" } });
  task.failTurn("bob");
  task.turn("boss", complete("done"));
  task.post("again");
  task.redefine(office({ hash: "two" }));
  task.cancel();
  return task;
}

describe("evolve", () => {
  it("folding a journal gives the same state as its decisions", () => {
    const task = eventfulTask();
    expect(fold(task.entries)).toEqual(task.state);
    expect(fold(JSON.parse(JSON.stringify(task.entries)))).toEqual(task.state);
  });

  it("an empty journal is refused", () => {
    expect(fold([])).toBeUndefined();
  });

  it("a journal that does not begin with `opened` is refused", () => {
    const { entries } = new TestTask(office());
    expect(() => fold(entries.slice(1))).toThrow(/begins with 'opened', not with 'sent'/);
  });

  it("a second `opened` entry is refused", () => {
    const { entries, state } = new TestTask(office());
    const [opened] = entries;
    if (opened === undefined) throw new Error("there is an entry");
    expect(() => evolve(state, opened)).toThrow(/second 'opened' entry/);
  });

  it("numbers have no gaps, and the time of the last entry is kept", () => {
    const task = new TestTask(office());
    task.at += 500;
    task.turn("boss", ask("ann", "one"));
    expect(task.state.number).toBe(task.entries.length);
    expect(task.state.updatedAt).toBe(task.at);
    expect(task.state.createdAt).toBe(task.at - 500);
  });

  it("a request stays outstanding until the agent that asked gets an answer", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"), ask("bob", "two"), wait());
    expect(task.state.outstanding.map(({ from, to }) => `${from}>${to}`)).toEqual(["boss>ann", "boss>bob"]);
    task.turn("bob", respond("boss", "2"));
    expect(task.state.outstanding.map(({ to }) => to)).toEqual(["ann"]);
  });

  it("an agent cannot await a user's request", () => {
    expect(new TestTask(office()).state.outstanding).toEqual([]);
  });

  it("only the latest thousand unanswered requests are tracked", () => {
    const task = new TestTask(office(), { limits: { repetition: 0 } });
    const calls = Array.from({ length: 1_001 }, (_, index) => ask("ann", `${index}`));
    task.turn("boss", ...calls);
    expect(task.state.outstanding).toHaveLength(1_000);
  });

  it("an interrupt marks the turn whose calls are being executed, and no later one", () => {
    const task = new TestTask(office({ actions: [action("dig")] }));
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"));
    task.post("x");
    task.turn("boss", interrupt("ann", "stop"));
    expect(task.agent("ann").turn?.interrupted).toBe(true);
    task.finish("ann");
    task.turn("ann", act("dig"));
    expect(task.agent("ann").turn?.interrupted).toBe(false);
  });
});

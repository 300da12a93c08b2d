import { describe, expect, it } from "vitest";
import { act, ask, broadcast, complete, respond, wait } from "../../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../../test/kit/swarms.js";
import { TestTask } from "../../../../test/kit/test-task.js";
import { runtimeSettings } from "../../settings.js";

describe("the step limit", () => {
  it("a step is a taken message of a user or agent; at the limit the entrypoint gets its last turn", () => {
    const task = new TestTask(office(), { maxSteps: 2 });
    task.turn("boss", ask("ann", "how many?"), wait());
    expect(task.state.lastTurn).toBeUndefined();
    task.turn("ann", respond("boss", "three"));
    expect(task.state.steps).toBe(2);
    expect(task.waiting("boss")[0]).toMatch(/^::maximum_steps_reached::.*limit of 2 steps.*how many\?/s);
    expect(task.waiting("boss")[1]).toBe("answer: three");
    expect(task.state.lastTurn).toBe(task.head("boss"));
  });

  it("the last turn may complete the task", () => {
    const task = new TestTask(office(), { maxSteps: 1 });
    task.turn("boss", ask("ann", "how many?"));
    task.turn("boss", complete("about three"));
    expect(task.state.status).toBe("completed");
  });

  it("a last turn that does anything else fails the task, and its calls are not executed", () => {
    const task = new TestTask(office(), { maxSteps: 1 });
    task.turn("boss", ask("ann", "how many?"));
    task.turn("boss", ask("bob", "then you"));
    expect(task.state.status).toBe("failed");
    expect(task.state.error).toEqual({
      code: "step_limit",
      message: "the task was not completed within 1 steps",
    });
    expect(task.waiting("bob")).toEqual([]);
    expect(task.results("boss").at(-1)).toMatch(/only `task_complete` is allowed/);
  });

  it("a last turn that fails also fails the task", () => {
    const task = new TestTask(office(), { maxSteps: 1 });
    task.turn("boss", ask("ann", "how many?"));
    task.failTurn("boss");
    expect(task.state.error?.code).toBe("step_limit");
  });

  it("an entrypoint that cannot complete tasks gets no last turn: the task fails immediately", () => {
    const front = agent("front", { targets: ["boss"], entrypoint: true });
    const task = new TestTask(swarm([front, agent("boss", { targets: ["front"], supervisor: true })]), {
      maxSteps: 1,
    });
    task.turn("front", ask("boss", "how many?"));
    expect(task.state.error?.code).toBe("step_limit");
  });

  it("with a limit of 0 the user's own message is still taken", () => {
    const task = new TestTask(office(), { maxSteps: 0 });
    expect(task.waiting("boss")).toEqual(["task: do it"]);
    task.turn("boss", ask("ann", "how many?"));
    expect(task.waiting("boss")[0]).toMatch(/^::maximum_steps_reached::/);
    task.turn("boss", complete("no idea"));
    expect(task.state.status).toBe("completed");
  });

  it("a broadcast is one step for any number of recipients", () => {
    const task = new TestTask(office(), { maxSteps: 10 });
    task.turn("boss", broadcast("lunch"));
    task.turn("ann", ask("boss", "when?"));
    task.turn("bob", ask("boss", "where?"));
    expect(task.state.steps).toBe(2);
  });

  it("system messages do not count as steps", () => {
    const task = new TestTask(office({ actions: [action("dig")] }), { maxSteps: 2 });
    for (let round = 0; round < 4; round++) {
      task.turn("boss", act("dig"));
      task.finish("boss");
    }
    expect(task.state.steps).toBe(1);
  });

  it("`null` lifts the server's limit, and a number overrides it", () => {
    expect(new TestTask(office(), { limits: { maxSteps: 15 } }).state.maxSteps).toBe(15);
    expect(
      new TestTask(office(), { limits: { maxSteps: 15 }, maxSteps: null }).state.maxSteps,
    ).toBeUndefined();
    expect(new TestTask(office(), { limits: { maxSteps: 15 }, maxSteps: 3 }).state.maxSteps).toBe(3);
  });

  it("the step count restarts when the task is resumed, with the limit of the new round if one is given", () => {
    const task = new TestTask(office(), { maxSteps: 2 });
    task.turn("boss", complete("done"));
    task.post("again", { maxSteps: 5 });
    expect(task.state).toMatchObject({ steps: 0, maxSteps: 5 });
    task.turn("boss", complete("done"));
    task.post("again", { maxSteps: null });
    expect(task.state.maxSteps).toBeUndefined();
  });

  it("a user's message that waits at the limit is answered in the next round", () => {
    const task = new TestTask(office(), { maxSteps: 1 });
    task.turn("boss", ask("ann", "how many?"));
    task.post("are you done?");
    task.turn("boss", complete("no"));
    expect(task.state.status).toBe("running");
    expect(task.waiting("boss")).toEqual(["task: are you done?"]);
  });

  it("the message that reached the limit is not lost: it is served when the task is resumed", () => {
    const task = new TestTask(office(), { maxSteps: 1 });
    task.turn("boss", ask("ann", "how many?"));
    task.turn("boss", complete("no idea"));
    task.post("do ask ann");
    expect(task.waiting("ann")).toEqual(["question: how many?"]);
  });

  it("a notice that was not taken does not enter the next round", () => {
    const task = new TestTask(office(), { maxSteps: 1, limits: { taskTimeout: 1_000 } });
    task.turn("boss", ask("ann", "how many?"));
    expect(task.waiting("boss")[0]).toMatch(/^::maximum_steps_reached::/);
    task.at += 1_000;
    task.do({ type: "time_limit" });
    expect(task.state.error?.code).toBe("task_timeout");
    task.post("take your time");
    expect(task.waiting("boss")).toEqual(["task: take your time"]);
  });
});

describe("the guard against repetition", () => {
  const repeat = (task: TestTask, body: string) => {
    task.turn("boss", ask("ann", body));
    task.turn("ann", respond("boss", `no ${task.state.number}`));
  };

  it("sending the same message three times fails the task with that reason", () => {
    const task = new TestTask(office());
    repeat(task, "please");
    repeat(task, "please");
    task.turn("boss", ask("ann", "please"));
    expect(task.state.status).toBe("failed");
    expect(task.state.error?.code).toBe("repetition");
    expect(task.state.error?.message).toMatch(/'boss' sent the same message to ann 3 times/);
  });

  it("another body, subject or recipient is not a repetition", () => {
    const task = new TestTask(office());
    repeat(task, "please");
    repeat(task, "please!");
    repeat(task, "please!!");
    task.turn("boss", ask("bob", "please"), ask("ann", "please", "urgent"));
    expect(task.state.status).toBe("running");
  });

  it("after an action the same message is not a repetition", () => {
    const task = new TestTask(office({ actions: [action("dig")] }));
    repeat(task, "please");
    repeat(task, "please");
    task.turn("boss", act("dig"));
    task.finish("boss");
    task.turn("boss", ask("ann", "please"));
    expect(task.state.status).toBe("running");
  });

  it("only the last twelve messages count", () => {
    const task = new TestTask(office());
    repeat(task, "please");
    repeat(task, "please");
    for (let other = 0; other < 5; other++) repeat(task, `other ${other}`);
    task.turn("boss", ask("ann", "please"));
    expect(task.state.status).toBe("running");
  });

  it("a limit of 0 turns the guard against repetition off", () => {
    const task = new TestTask(office(), { limits: { repetition: 0 } });
    for (let round = 0; round < 5; round++) repeat(task, "please");
    expect(task.state.status).toBe("running");
  });
});

describe("the guard against error loops", () => {
  it("five consecutive errors of one agent fail the task, and the reason names the last one", () => {
    const task = new TestTask(office());
    for (let error = 0; error < 4; error++) task.turn("boss", ask("zoe", `${error}`));
    expect(task.state.status).toBe("running");
    task.turn("boss", act("fly"));
    expect(task.state.error).toEqual({
      code: "error_loop",
      message: "agent 'boss' made 5 errors in a row; the last one: unknown tool or action 'fly'",
    });
  });

  it("taking other mail restarts the count of errors", () => {
    const task = new TestTask(office({ actions: [action("dig")] }));
    for (let error = 0; error < 4; error++) task.turn("boss", ask("zoe", `${error}`));
    task.turn("boss", act("dig"));
    task.finish("boss");
    task.turn("boss", ask("zoe", "please"));
    expect(task.state.status).toBe("running");
    expect(task.agent("boss").errors).toBe(1);
  });

  it("mail that waits behind the errors does not restart the count: two agents cannot keep an error loop running", () => {
    const task = new TestTask(office(), { maxSteps: 5, limits: { repetition: 0 } });
    task.turn("boss", ask("ann", "hello"), ask("zoe", "hello"));
    for (let turn = 0; turn < 4 && task.state.status === "running"; turn++) {
      task.turn("ann", ask("boss", `${turn}`), ask("zoe", "hello"));
      task.turn("boss", ask("ann", `${turn}`), ask("zoe", "hello"));
    }
    expect(task.state.error?.code).toBe("error_loop");
  });

  it("repeated failures of an agent count as an error loop of the agent that keeps asking it", () => {
    const task = new TestTask(office());
    for (let error = 0; error < 5; error++) {
      task.turn("boss", ask("ann", `try ${error}`));
      task.failTurn("ann", "broken");
    }
    expect(task.state.error?.code).toBe("error_loop");
    expect(task.state.error?.message).toContain("broken");
  });
});

describe("the guard against endless action", () => {
  it("[AGENTS-T-18] an agent that keeps acting without mail from another sender fails the task with that reason", () => {
    const definition = office({ actions: [action("dig")] });
    const task = new TestTask(definition, { limits: { ownTurns: 3 } });
    for (let turn = 0; turn < 3; turn++) {
      task.turn("boss", act("dig"));
      task.finish("boss");
    }
    expect(task.state.status).toBe("running");
    task.turn("boss", act("dig"));
    task.finish("boss");
    expect(task.state.error?.code).toBe("action_loop");
    // The failure names the setting, and the setting is documented.
    const [setting] = /limits\.\w+/.exec(task.state.error?.message ?? "") ?? [];
    expect(runtimeSettings.declarations.ownTurns.key).toBe(setting);
  });

  it("mail from another sender restarts the count, and a limit of 0 turns the guard off", () => {
    const definition = office({ actions: [action("dig")] });
    for (const limits of [{ ownTurns: 3 }, { ownTurns: 0 }]) {
      const task = new TestTask(definition, { limits });
      for (let turn = 0; turn < 8; turn++) {
        if (limits.ownTurns > 0) task.post(`message ${turn}`);
        task.turn("boss", act("dig"));
        task.finish("boss");
      }
      expect(task.state.status).toBe("running");
    }
  });
});

describe("idle tasks", () => {
  /** Boss and ann each wait for the other. */
  const fallAsleep = (task: TestTask) => {
    task.turn("boss", ask("ann", "note this"), wait());
    task.turn("ann", ask("boss", "noted?"), wait());
    return task.turn("boss", wait());
  };

  it("the entrypoint is notified that the task is idle", () => {
    const task = new TestTask(office());
    const entries = fallAsleep(task);
    expect(task.kinds(entries)).toEqual(["turn", "result", "idle", "sent"]);
    expect(task.waiting("boss")[0]).toMatch(/^::task_idle::/);
  });

  it("a task that is idle again after the notice fails with that reason", () => {
    const task = new TestTask(office());
    fallAsleep(task);
    task.turn("boss", wait());
    expect(task.state.error).toEqual({
      code: "idle",
      message: "no agent had anything left to do, and none completed the task",
    });
  });

  it("after the notice the task can be completed, and its next round can get another notice", () => {
    const task = new TestTask(office());
    fallAsleep(task);
    task.turn("boss", complete("noted"));
    expect(task.state.status).toBe("completed");
    task.post("again");
    fallAsleep(task);
    expect(task.waiting("boss")[0]).toMatch(/^::task_idle::/);
  });

  it("a task is not idle while an action runs, a breakpoint is open, or another swarm owes an answer", () => {
    const busy = new TestTask(office({ actions: [action("dig")] }));
    busy.turn("boss", act("dig"));
    expect(busy.state.idleTold).toBe(false);

    const boss = agent("boss", {
      targets: ["x@north"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
    });
    const abroad = new TestTask(swarm([boss]));
    abroad.turn("boss", ask("x@north", "how many?"), wait());
    const out = abroad.state.outbound[0];
    abroad.do({ type: "carried", messageId: out?.message.id ?? "", swarm: "north", ok: true });
    expect(abroad.state.outbound).toEqual([]);
    expect(abroad.state.idleTold).toBe(false);
  });

  it("a task that belongs to another swarm is never reported as idle", () => {
    const instance = { role: "swarm", id: "north" } as const;
    const task = new TestTask(office(), { instance, owner: "user:ulla@north" });
    fallAsleep(task);
    expect(task.state).toMatchObject({ idleTold: false, status: "running" });
  });

  it("a task in manual mode is never reported as idle", () => {
    const task = new TestTask(office(), { manual: true });
    fallAsleep(task);
    expect(task.state).toMatchObject({ idleTold: false, status: "running" });
  });
});

describe("changed definitions", () => {
  const without = (name: string) => {
    const full = office({ hash: "two" });
    return { ...full, agents: full.agents.filter((one) => one.name !== name) };
  };

  it("the new hash is journaled once", () => {
    const task = new TestTask(office());
    expect(task.kinds(task.redefine(office({ hash: "two" })))).toEqual(["redefined"]);
    expect(task.redefine(office({ hash: "two" }))).toEqual([]);
  });

  it("mail to a removed agent is returned to its sender, which does not wait for an answer", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"), wait());
    task.redefine(without("ann"));
    expect(task.waiting("boss")).toEqual([
      "::agent_error::: Your message could not be delivered: there is no agent 'ann' in this swarm.",
    ]);
    expect(task.state.outstanding).toEqual([]);
  });

  it("a user's mail to a removed agent fails the task with that reason", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"));
    task.post("and you?", { to: ["bob"] });
    task.redefine(without("bob"));
    expect(task.state.error?.code).toBe("unknown_agent");
  });

  it("mail to several removed agents is returned at once", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"));
    task.post("for ann", { to: ["ann"] });
    task.post("for bob", { to: ["bob"] });
    const full = office({ hash: "two" });
    task.redefine({ ...full, agents: full.agents.filter((one) => one.name === "boss") });
    expect(task.waiting("ann")).toEqual([]);
    expect(task.waiting("bob")).toEqual([]);
    expect(task.state.status).toBe("failed");
  });

  it("a missing entrypoint fails the task with that reason", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"));
    task.redefine(without("boss"));
    expect(task.state.error?.code).toBe("entrypoint_missing");
  });

  it("calls of a removed agent get their results when its action ends", () => {
    const task = new TestTask(office({ actions: [action("dig")] }));
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"), respond("boss", "dug"));
    task.redefine(without("ann"));
    task.finish("ann");
    expect(task.results("ann")).toEqual([
      "ok dig: done",
      "error send_response: the agent is no longer part of the swarm",
    ]);
  });

  it("a task that was idle while the swarm changed journals the change when it continues", () => {
    const task = new TestTask(office());
    task.turn("boss", complete("done"));
    task.rules = { ...task.rules, hash: "two" };
    expect(task.kinds(task.post("again"))).toContain("redefined");
    expect(task.state.definition).toBe("two");
  });
});

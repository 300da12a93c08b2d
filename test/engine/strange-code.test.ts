/** Agents and carriers are foreign code: an invalid value from them fails at most their own turn. */
import { describe, expect, it, vi } from "vitest";
import type { TurnResult } from "../../src/engine/agent.js";
import type { Carrier } from "../../src/engine/carrier.js";
import { ask } from "../kit/answers.js";
import { openRoom, storedEntries } from "../kit/rooms.js";
import { openWorld, ULLA } from "../kit/simulated-world.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { until } from "../kit/waiting.js";

const broken = (): never => {
  throw new Error("I am broken");
};

/** Answers that look valid at first. */
const STRANGE_ANSWERS: readonly (readonly [what: string, make: () => TurnResult])[] = [
  ["throws when it is looked at", () => Object.defineProperty({ calls: [] }, "calls", { get: broken })],
  [
    "throws when `then` is read",
    () =>
      new Proxy(
        { calls: [] },
        {
          has: () => true,
          get: (target, name) => (name === "then" ? broken() : Reflect.get(target, name)),
        },
      ),
  ],
  [
    "changes when it is serialized",
    () => Object.assign({ text: "hello", calls: [] }, { toJSON: () => ({}) }),
  ],
];

describe("an answer", () => {
  for (const [what, make] of STRANGE_ANSWERS) {
    for (const later of [false, true]) {
      it(`an answer that ${what} fails only its own turn${later ? ", even as a promise" : ""}`, async () => {
        let asked = 0;
        const desk = agent("desk", {
          supervisor: true,
          entrypoint: true,
          run: () => {
            asked++;
            return later ? Promise.resolve().then(make) : make();
          },
        });
        const { room, problems } = await openRoom({ swarm: swarm([desk]) });
        const posted = await room.user("ann").post("go");
        await until(async () => (await room.store.tasks.byKey(posted.key))?.status === "failed");
        expect((await posted.outcome).error?.code).toBe("agent_error");
        expect(asked).toBe(1);
        expect(room.runtime.stats.turns).toBe(0);
        expect(problems.map(({ code }) => code)).toEqual(["agent_error"]);
      });
    }
  }

  it("an invalid answer of a remote agent is refused and affects no other agent", async () => {
    let asked = 0;
    const desk = agent("desk", {
      supervisor: true,
      entrypoint: true,
      targets: ["helper"],
      run: ({ messages: [{ id }], signal }) => {
        asked++;
        if (asked === 1)
          return {
            calls: [{ id, name: "send_request", args: { target: "helper", subject: "?", body: "?" } }],
          };
        return new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(new Error("stopped"))),
        );
      },
    });
    const { room, problems } = await openRoom({
      swarm: swarm([desk, agent("helper", { targets: ["desk"], remote: true })]),
    });
    const posted = await room.user("ann").post("go", { taskId: "t" });
    const helper = room.remoteAgent("helper");
    const lending = await helper.next();
    if (lending === undefined) throw new Error("the helper has no mail");
    await room.user("ann").post("and?", { taskId: "t" });
    await until(() => asked === 2);
    // As untyped JavaScript would pass it.
    const noAnswer: TurnResult = JSON.parse('{"text": "hello"}');
    await expect(helper.answer(lending, noAnswer)).rejects.toMatchObject({ code: "bad_answer" });
    await helper.answer(lending, { text: "hello", calls: [] });
    expect((await storedEntries(room.store, posted.key)).filter(({ t }) => t === "turn")).toHaveLength(2);
    expect(asked).toBe(2);
    expect(problems).toEqual([]);
  });
});

const STRANGE_CARRIERS: readonly (readonly [what: string, carrier: Carrier])[] = [
  ["throws when it is asked whose mail it carries", { owns: broken, rows: () => [] }],
  // As untyped JavaScript would pass it.
  ["gives nothing", { owns: () => true, rows: () => JSON.parse("null") }],
  ["gives something else", { owns: () => true, rows: () => JSON.parse("{}") }],
];

describe("a carrier", () => {
  for (const [what, carrier] of STRANGE_CARRIERS) {
    it(`a carrier that ${what} refuses the mail: its sender is notified, and the task continues`, async () => {
      const desk = agent("desk", {
        supervisor: true,
        entrypoint: true,
        interswarm: true,
        targets: ["x@north"],
        run: ({ messages: [{ id, message }] }) => ({
          calls: [
            message.body === "go"
              ? { id, name: "send_request", args: { target: "x@north", subject: "?", body: "?" } }
              : { id, name: "task_complete", args: { finish_message: message.subject } },
          ],
        }),
      });
      const { room, problems } = await openRoom({ swarm: swarm([desk]), carriers: [carrier] });
      const answer = await room.user("ann").ask("go");
      expect(answer).toMatchObject({ status: "completed", response: "::router_error::" });
      expect(problems).toEqual([]);
    });
  }
});

describe("the answer to a breakpoint", () => {
  it("a breakpoint answer that cannot be stored is refused, and one that is changed later keeps its value", async () => {
    let asked = 0;
    const desk = agent("desk", {
      supervisor: true,
      entrypoint: true,
      actions: ["sign"],
      run: ({ messages: [{ id }], results: [result] }) => {
        asked++;
        if (result === undefined) return { calls: [{ id, name: "sign", args: {} }] };
        return { calls: [{ id, name: "task_complete", args: { finish_message: result.content } }] };
      },
    });
    const definition = swarm([desk], { actions: [action("sign")], breakpoints: ["sign"] });
    const { room, problems } = await openRoom({ swarm: definition });
    const paused = await room.user("ann").ask("go", { taskId: "t" });
    if (paused.status !== "paused") throw new Error("it does not wait");
    const task = await room.user("ann").requireTask("t");
    const callId = paused.breakpoints[0]?.id ?? "";
    // As untyped JavaScript would pass it.
    const bad = Object.assign({ callId, content: "" }, { content: 1n });
    await expect(task.answer([bad])).rejects.toMatchObject({ code: "bad_input" });
    const good = { callId, content: "yes" };
    const answering = task.answer([good]);
    good.content = "no";
    expect(await answering).toMatchObject({ status: "completed", response: "yes" });
    expect(asked).toBe(2);
    expect(problems).toEqual([]);
  });
});

describe("an answer on which the rules throw", () => {
  const open = async (throws: number) => {
    let asked = 0;
    let breakIds = (): void => {};
    const boss = agent("boss", {
      targets: ["ann"],
      supervisor: true,
      entrypoint: true,
      run: () => {
        if (asked++ === 0) breakIds();
        return { calls: [{ id: "1", ...ask("ann", "question") }] };
      },
    });
    const world = await openWorld(swarm([boss, agent("ann", { targets: ["boss"] })]));
    breakIds = () => {
      const uuid = vi.spyOn(world.ids, "uuid");
      for (let n = 0; n < throws; n++) uuid.mockImplementationOnce(broken);
    };
    const posted = await world.runtime.post(ULLA, { body: "go" });
    for (let n = 0; n < 20; n++) {
      await world.settle();
      world.clock.advance(1_000);
    }
    return { outcome: await posted.outcome, asked };
  };

  it("an answer on which the rules throw fails its turn, and the agent does not run again", async () => {
    const { outcome, asked } = await open(1);
    expect(outcome).toMatchObject({ status: "failed", error: { code: "internal_error" } });
    expect(asked).toBe(1);
  });

  it("the task fails if the rules also throw on the failed turn", async () => {
    const { outcome, asked } = await open(2);
    expect(outcome).toMatchObject({ status: "failed", error: { code: "internal_error" } });
    expect(asked).toBe(1);
  });
});

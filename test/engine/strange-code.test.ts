/** Agents and carriers are other people's code: whatever they hand over costs at most their own turn. */
import { describe, expect, it } from "vitest";
import type { AgentAnswer } from "../../src/engine/agent.js";
import type { Carrier } from "../../src/engine/carrier.js";
import { openRoom, storedEntries } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { until } from "../kit/waiting.js";

const broken = (): never => {
  throw new Error("I am broken");
};

/** Answers that look right at first. */
const STRANGE_ANSWERS: readonly (readonly [what: string, make: () => AgentAnswer])[] = [
  ["throws when it is looked at", () => Object.defineProperty({ calls: [] }, "calls", { get: broken })],
  [
    "throws when it is asked whether it comes later",
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
    "becomes something else when it is stored",
    () => Object.assign({ text: "hello", calls: [] }, { toJSON: () => ({}) }),
  ],
];

describe("an answer", () => {
  for (const [what, make] of STRANGE_ANSWERS) {
    for (const later of [false, true]) {
      it(`that ${what} fails its own turn${later ? ", also if it comes later" : ""}`, async () => {
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
        expect(room.runtime.figures.turns).toBe(0);
        expect(problems.map(({ code }) => code)).toEqual(["agent_error"]);
      });
    }
  }

  it("of a remote agent that is none is refused, and costs nobody else anything", async () => {
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
    // As JavaScript would hand it over.
    const noAnswer: AgentAnswer = JSON.parse('{"text": "hello"}');
    await expect(helper.answer(lending, noAnswer)).rejects.toMatchObject({ code: "bad_answer" });
    await helper.answer(lending, { text: "hello", calls: [] });
    expect((await storedEntries(room.store, posted.key)).filter(({ t }) => t === "turn")).toHaveLength(2);
    expect(asked).toBe(2);
    expect(problems).toEqual([]);
  });
});

const STRANGE_CARRIERS: readonly (readonly [what: string, carrier: Carrier])[] = [
  ["throws when it is asked whose mail it carries", { owns: broken, rows: () => [] }],
  // As JavaScript would hand it over.
  ["gives nothing", { owns: () => true, rows: () => JSON.parse("null") }],
  ["gives something else", { owns: () => true, rows: () => JSON.parse("{}") }],
];

describe("a carrier", () => {
  for (const [what, carrier] of STRANGE_CARRIERS) {
    it(`that ${what} has refused the mail: its sender hears of it, and the task goes on`, async () => {
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
  it("that cannot be stored is refused before anything is decided, and one that is changed later stays what it was", async () => {
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
    // As JavaScript would hand it over.
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

import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { PostReceipt, RoundOutcome } from "../../src/engine/runtime/index.js";
import type { Mailroom } from "../../src/library/mailroom.js";
import { complete } from "../kit/answers.js";
import { FakeAgents } from "../kit/fake-agents.js";
import { openRoom } from "../kit/rooms.js";
import { agent, swarm } from "../kit/swarms.js";
import { loopTurns } from "../kit/waiting.js";

function twoDesks() {
  const fakeAgents = new FakeAgents();
  const desk = (name: string) =>
    agent(name, { supervisor: true, entrypoint: true, run: fakeAgents.mind(name) });
  return { fakeAgents, definition: swarm([desk("sales"), desk("legal")]) };
}

const bodyOf = ({ message }: RoundOutcome): string => message.message.body;

/** The outcome according to the journal. */
async function fromJournal(room: Mailroom, { key, taskId, messageId, number }: PostReceipt): Promise<string> {
  return bodyOf(await room.runtime.outcomeOf({ key, taskId, messageId, number }));
}

describe("the outcome of a message", () => {
  it("[ENGINE-A-1] each user gets the answer to their own message, even if two agents end their turns at once", async () => {
    const { fakeAgents, definition } = twoDesks();
    const { room } = await openRoom({ swarm: definition });
    const ann = room.user("ann");
    const price = await ann.post("the price?", { taskId: "t" });
    const contract = await ann.post("the contract?", { taskId: "t", entrypoint: "legal" });
    const sales = await fakeAgents.next("sales");
    const legal = await fakeAgents.next("legal");
    sales.answer(complete("ten"));
    legal.answer(complete("signed"));
    const told = (await Promise.all([price.outcome, contract.outcome])).map(bodyOf);
    expect(told).toEqual(["ten", "signed"]);
    expect(await Promise.all([fromJournal(room, price), fromJournal(room, contract)])).toEqual(told);
  });

  it("[ENGINE-A-1] an outcome equals that of the journal, for any order of messages, answers and endings", async () => {
    // Each step may or may not be durable when the next one follows.
    for (let pattern = 0; pattern < 16; pattern++) {
      const { fakeAgents, definition } = twoDesks();
      const { room } = await openRoom({ swarm: definition });
      const ann = room.user("ann");
      const pauseIf = (step: number) => loopTurns((pattern >> step) & 1 ? 4 : 0);
      const posted = [await ann.post("one", { taskId: "t" })];
      const first = await fakeAgents.next("sales");
      const second = ann.post("two", { taskId: "t", entrypoint: "legal" });
      await pauseIf(0);
      const third = ann.post("three", { taskId: "t" });
      await pauseIf(1);
      first.answer(complete("1"));
      await pauseIf(2);
      (await fakeAgents.next("legal")).answer(complete("2"));
      await pauseIf(3);
      (await fakeAgents.next("sales")).answer(complete("3"));
      posted.push(await second, await third);
      const told = (await Promise.all(posted.map(({ outcome }) => outcome))).map(bodyOf);
      expect(told, `pattern ${pattern}`).toEqual(
        await Promise.all(posted.map((message) => fromJournal(room, message))),
      );
      await room.close();
    }
  });
});

describe("the stream of a message", () => {
  it("[ENGINE-D-3] the stream of a message continues past the answer to an earlier message and ends with its own", async () => {
    const { fakeAgents, definition } = twoDesks();
    const { room } = await openRoom({ swarm: definition });
    const ann = room.user("ann");
    await ann.post("one", { taskId: "t" });
    const responses: unknown[] = [];
    const reading = (async () => {
      for await (const { data } of ann.stream("two", { taskId: "t", entrypoint: "legal" })) {
        if ("response" in data) responses.push(data.response);
      }
    })();
    const legal = await fakeAgents.next("legal");
    (await fakeAgents.next("sales")).answer(complete("first"));
    await loopTurns(10);
    legal.answer(complete("second"));
    await reading;
    expect(responses).toEqual(["first", "second"]);
  });
});

describe("an agent's answer", () => {
  it("[ENGINE-D-4] an agent may return any thenable", async () => {
    const answer = { calls: [{ id: "1", name: "task_complete", args: { finish_message: "hello" } }] };
    // Not an instance of the built-in Promise.
    const ForeignPromise: PromiseConstructor = runInNewContext("Promise");
    const run = () => ForeignPromise.resolve(answer);
    const { room } = await openRoom({
      swarm: swarm([agent("boss", { supervisor: true, entrypoint: true, run })]),
    });
    expect(await room.user("ann").ask("hi")).toMatchObject({ status: "completed", response: "hello" });
  });
});

import { describe, expect, expectTypeOf, it } from "vitest";
import { Story } from "../../test/swarms/turn.js";
import type { Turn, TurnResult } from "../engine/agent.js";
import { functionAgent, type MailFunction } from "./function.js";
import type { CallableAction, Mail } from "./mail.js";

const fromAnn = { from: "ann", fromType: "user" } as const;

async function run(agent: MailFunction, turn: Turn): Promise<TurnResult> {
  let count = 0;
  return functionAgent(agent, { newId: () => `id${++count}` })(turn);
}

/** The calls without their ids. */
async function callsOf(agent: MailFunction, turn: Turn): Promise<unknown[]> {
  return (await run(agent, turn)).calls.map(({ name, args }) => [name, args]);
}

describe("the input of a function agent", () => {
  it("has the parts of the message", async () => {
    const seen: unknown[] = [];
    const turn = new Story().gets({ from: "boss", subject: "S", body: "B" }).turn();
    await run((mail) => {
      seen.push(mail.from, mail.fromType, mail.type, mail.subject, mail.body, mail.result);
      mail.await();
    }, turn);
    expect(seen).toEqual(["boss", "agent", "request", "S", "B", undefined]);
  });

  it("has the full address of agents in other swarms", async () => {
    const turn = new Story().gets({ from: "boss", senderSwarm: "elsewhere" }).turn();
    expect(await callsOf((mail) => mail.reply("yes"), turn)).toEqual([
      ["send_response", { target: "boss@elsewhere", subject: "Re: Question", body: "yes" }],
    ]);
  });

  it("is still the request when the results of its actions arrive", async () => {
    const turn = new Story().gets({ from: "boss", body: "add" }).acts("sum", "4").turn();
    const calls = await callsOf((mail) => mail.reply(`${mail.body}: ${mail.result?.content}`), turn);
    expect(calls).toEqual([["send_response", { target: "boss", subject: "Re: Question", body: "add: 4" }]]);
  });

  it("separates results of actions from receipts of mail", async () => {
    const turn = new Story()
      .gets(fromAnn)
      .calls({ name: "send_request", args: { target: "a", subject: "", body: "" } })
      .gets({ from: "a", type: "response", body: "done" })
      .turn();
    const answer = await run((mail) => (mail.result === undefined ? "no action" : "action"), turn);
    expect(answer.text).toBe("no action");
  });

  it("lists the answers of this round and the agents that have not answered", async () => {
    const ask = (target: string) => ({ name: "send_request", args: { target, subject: "", body: "" } });
    const story = new Story()
      .gets(fromAnn)
      .calls(ask("a"))
      .gets({ from: "a", type: "response", body: "old" })
      .gets({ ...fromAnn, body: "again" })
      .calls(ask("a"), ask("b"))
      .gets({ from: "b", type: "response", body: "from b" });
    const look: MailFunction = (mail) =>
      JSON.stringify([mail.waitingFor, mail.answerFrom("a"), mail.answerFrom("b")]);
    expect((await run(look, story.turn())).text).toBe(JSON.stringify([["a"], undefined, "from b"]));
    story.gets({ from: "a", type: "response", body: "from a" });
    expect((await run(look, story.turn())).text).toBe(JSON.stringify([[], "from a", "from b"]));
  });

  it("includes every member of a turn", () => {
    expectTypeOf<Mail>().toExtend<Turn>();
  });
});

describe("the verbs of a function agent", () => {
  it("are recorded in order, with new ids", async () => {
    const answer = await run((mail) => {
      mail.request("a", "S", "B");
      mail.act("sum", { of: [1, 2] });
      mail.broadcast("all", "hands");
      mail.interrupt("b", "stop", "now");
      mail.acknowledge("noted");
      mail.ignore();
      mail.complete("done");
    }, new Story().gets(fromAnn).turn());
    expect(answer.calls).toEqual([
      { id: "id1", name: "send_request", args: { target: "a", subject: "S", body: "B" } },
      { id: "id2", name: "sum", args: { of: [1, 2] } },
      { id: "id3", name: "send_broadcast", args: { subject: "all", body: "hands" } },
      { id: "id4", name: "send_interrupt", args: { target: "b", subject: "stop", body: "now" } },
      { id: "id5", name: "acknowledge_broadcast", args: { note: "noted" } },
      { id: "id6", name: "ignore_broadcast", args: {} },
      { id: "id7", name: "task_complete", args: { finish_message: "done" } },
    ]);
  });

  it("reply to a user by completing the task", async () => {
    const turn = new Story().gets(fromAnn).turn();
    expect(await callsOf((mail) => mail.reply("42"), turn)).toEqual([
      ["task_complete", { finish_message: "42" }],
    ]);
  });

  it("cannot reply to a user when the agent cannot complete tasks", async () => {
    const turn = new Story().tools("send_request").gets(fromAnn).turn();
    await expect(run((mail) => mail.reply("42"), turn)).rejects.toMatchObject({
      code: "cannot_reply",
      message: expect.stringContaining("canCompleteTasks"),
    });
  });

  it("reply to the last correspondent when the system wrote", async () => {
    const turn = new Story()
      .gets({ from: "boss" })
      .gets({ from: "test", fromType: "system", type: "response", subject: "::agent_error::" })
      .turn();
    expect(await callsOf((mail) => mail.reply("sorry"), turn)).toMatchObject([
      ["send_response", { target: "boss" }],
    ]);
  });

  it("add Re: to a subject once", async () => {
    const turn = new Story().gets({ from: "boss", subject: "RE: lunch" }).turn();
    expect(await callsOf((mail) => mail.reply("ok"), turn)).toMatchObject([
      ["send_response", { subject: "RE: lunch" }],
    ]);
  });

  it("have the arguments of an action checked by the compiler", async () => {
    const book: CallableAction<{ seats: number }> = { name: "book" };
    const turn = new Story().gets(fromAnn).turn();
    expect(await callsOf((mail) => mail.act(book, { seats: 2 }), turn)).toEqual([["book", { seats: 2 }]]);
    // @ts-expect-error seats is a number
    await callsOf((mail) => mail.act(book, { seats: "two" }), turn);
  });
});

describe("the result of a function agent", () => {
  const turn = new Story().gets(fromAnn).turn();
  const call = { id: "x", name: "task_complete", args: { finish_message: "done" } };

  it.each<[string, MailFunction, TurnResult]>([
    ["a text", () => "hello", { text: "hello", calls: [] }],
    ["calls", () => [call], { calls: [call] }],
    ["an answer", async () => ({ text: "t", calls: [call] }), { text: "t", calls: [call] }],
  ])("may be %s", async (_, agent, answer) => {
    expect(await run(agent, turn)).toEqual(answer);
  });

  it("is rejected when calls were also recorded", async () => {
    const both: MailFunction = (mail) => {
      mail.await();
      return "and a text";
    };
    await expect(run(both, turn)).rejects.toMatchObject({
      code: "mixed_answer",
      message: expect.stringContaining("await_message"),
    });
  });

  it("must be something", async () => {
    await expect(run(() => {}, turn)).rejects.toMatchObject({
      code: "empty_answer",
      message: expect.stringContaining("mail.await()"),
    });
  });

  it("is checked at run time for JavaScript callers", async () => {
    const wrong = JSON.parse('{"text": "no calls"}');
    await expect(run(() => wrong, turn)).rejects.toMatchObject({ code: "agent_bad_answer" });
  });
});

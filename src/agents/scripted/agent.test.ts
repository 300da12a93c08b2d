import { describe, expect, it } from "vitest";
import { Story } from "../../../test/swarms/turn.js";
import type { Turn } from "../../engine/agent.js";
import { scriptedAgent } from "./agent.js";
import type { ScriptedRuleInput } from "./rules.js";

const fromAnn = { from: "ann", fromType: "user" } as const;

async function callsOf(rules: readonly ScriptedRuleInput[], turn: Turn): Promise<unknown[]> {
  const { calls } = await scriptedAgent(rules)(turn);
  return calls.map(({ name, args }) => [name, args]);
}

/** Runs the first matching rule. */
async function answerOf(rules: readonly ScriptedRuleInput[], turn: Turn): Promise<string> {
  const [first] = await callsOf(rules, turn);
  return JSON.stringify(first);
}

const say = (text: string): ScriptedRuleInput["do"] => [{ task_complete: text }];
const otherwise: ScriptedRuleInput = { do: say("otherwise") };

describe("the conditions of a rule", () => {
  it.each<[string, ScriptedRuleInput["when"], boolean]>([
    ["type", { type: "request" }, true],
    ["another type", { type: ["response", "broadcast"] }, false],
    ["sender", { from: ["bob", "ann"] }, true],
    ["another sender", { from: "bob" }, false],
    ["type of sender", { from_type: "user" }, true],
    ["another type of sender", { from_type: "agent" }, false],
    ["part of the body, in any case", { body: "KYOTO" }, true],
    ["another body", { body: "Oslo" }, false],
    ["several parts", { body: ["kyoto", { contains: "weather" }] }, true],
    ["several parts, one missing", { body: ["kyoto", "rain"] }, false],
    ["the whole subject", { subject: { equals: "Question" } }, true],
    ["not the whole subject", { subject: { equals: "Quest" } }, false],
    ["an expression", { body: { matches: "in \\w+" } }, true],
    ["a case-sensitive expression", { body: { matches: "KYOTO", flags: "u" } }, false],
    ["no result of an action", { result: false }, true],
    ["a result of an action", { result: true }, false],
    ["no request is unanswered", { waiting: false }, true],
    ["an agent has answered", { answered: "bob" }, false],
    ["the first such message", { times: 1 }, true],
    ["the second such message", { times: { min: 2 } }, false],
  ])("%s", async (_, when, fits) => {
    const turn = new Story().gets({ ...fromAnn, body: "Weather in Kyoto" }).turn();
    expect(await answerOf([{ when, do: say("fits") }, otherwise], turn)).toContain(
      fits ? "fits" : "otherwise",
    );
  });

  it("can test the outcome of an action", async () => {
    const rules: ScriptedRuleInput[] = [
      { when: { result: "sum", ok: true }, do: say("good: {{result}}") },
      { when: { result: "sum", ok: false }, do: say("bad: {{result}}") },
      otherwise,
    ];
    expect(await answerOf(rules, new Story().gets(fromAnn).acts("sum", "4").turn())).toContain("good: 4");
    expect(await answerOf(rules, new Story().gets(fromAnn).acts("sum", "no", false).turn())).toContain(
      "bad: no",
    );
    expect(await answerOf(rules, new Story().gets(fromAnn).acts("other", "4").turn())).toContain("otherwise");
  });

  it("count messages of the task, regardless of other events", async () => {
    const rules: ScriptedRuleInput[] = [
      { when: { from: "ann", times: { max: 2 } }, do: say("patient") },
      { when: { from: "ann" }, do: say("tired") },
    ];
    const story = new Story().gets(fromAnn).gets({ from: "bob" }).gets(fromAnn);
    expect(await answerOf(rules, story.turn())).toContain("patient");
    expect(await answerOf(rules, story.gets(fromAnn).turn())).toContain("tired");
  });
});

describe("the templates of a step", () => {
  it("use the message, captures, results, answers and earlier captures", async () => {
    const story = new Story()
      .gets({ ...fromAnn, body: "My name is Ann and I am in Kyoto" })
      .calls({ name: "send_request", args: { target: "bob", subject: "", body: "" } })
      .gets({ from: "bob", type: "response", body: "four" });
    const rules: ScriptedRuleInput[] = [
      {
        when: { from: "ann", body: { matches: "name is (?<name>\\w+).* in (?<city>\\w+)" } },
        do: say("noted"),
      },
      {
        when: { body: { matches: "(f)(.+)" } },
        do: say(
          "{{remember.name}}/{{match.2}}/{{answers.bob}}/{{from}}/{{question}}/{{agent}}/{{match.1|x}}",
        ),
      },
    ];
    expect(await answerOf(rules, story.turn())).toContain(
      "Ann/our/four/bob/My name is Ann and I am in Kyoto/me/f",
    );
  });

  it("keep results of the round for later turns", async () => {
    const story = new Story().gets(fromAnn).acts("sum", "4").acts("product", "3");
    expect(await answerOf([{ do: say("{{results.sum}} and {{results.product}}") }], story.turn())).toContain(
      "4 and 3",
    );
  });

  it("make typed arguments of whole placeholders", async () => {
    const turn = new Story().gets({ ...fromAnn, body: "3 days, metric true" }).turn();
    const rules: ScriptedRuleInput[] = [
      {
        when: { body: { matches: "(?<days>\\d+) days, metric (?<metric>\\w+)" } },
        do: [
          {
            act: {
              name: "forecast",
              args: {
                days: "{{match.days:number}}",
                metric: "{{match.metric:boolean}}",
                list: ["{{from}}", 1],
              },
            },
          },
        ],
      },
    ];
    expect(await callsOf(rules, turn)).toEqual([["forecast", { days: 3, metric: true, list: ["ann", 1] }]]);
  });

  it("fail with a clear error when there is no value", async () => {
    const agent = scriptedAgent([{ do: say("{{answers.bob}}") }]);
    await expect(async () => agent(new Story().gets(fromAnn).turn())).rejects.toMatchObject({
      code: "no_value",
      message: expect.stringContaining("rules[0] of scripted agent 'me': {{answers.bob}} has no value"),
    });
  });
});

describe("a scripted agent", () => {
  it("executes all steps of the first matching rule", async () => {
    const letter = { target: "bob", subject: "S", body: "{{body}}" };
    const rules: ScriptedRuleInput[] = [
      {
        do: [
          { send_request: letter },
          { send_response: letter },
          { send_interrupt: letter },
          { send_broadcast: { subject: "S", body: "B" } },
          { reply: { subject: "own", body: "B" } },
          { acknowledge_broadcast: true },
          { ignore_broadcast: "why" },
          { await_message: true },
        ],
      },
    ];
    const calls = await callsOf(rules, new Story().gets({ from: "boss", body: "hi" }).turn());
    expect(calls).toEqual([
      ["send_request", { target: "bob", subject: "S", body: "hi" }],
      ["send_response", { target: "bob", subject: "S", body: "hi" }],
      ["send_interrupt", { target: "bob", subject: "S", body: "hi" }],
      ["send_broadcast", { subject: "S", body: "B" }],
      ["send_response", { target: "boss", subject: "own", body: "B" }],
      ["acknowledge_broadcast", {}],
      ["ignore_broadcast", { reason: "why" }],
      ["await_message", {}],
    ]);
  });

  it("returns the same answer for the same turn, and other ids for another turn", async () => {
    const agent = scriptedAgent([{ do: [{ await_message: true }, { await_message: true }] }]);
    const turn = new Story().gets(fromAnn).turn();
    const answer = await agent(turn);
    expect(await agent({ ...turn, attempt: 2 })).toEqual(answer);
    const other = await agent(new Story().gets(fromAnn).turn());
    const ids = [...answer.calls, ...other.calls].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
  });

  it("fails when a rule says so", async () => {
    const agent = scriptedAgent([{ do: [{ fail: "no {{body}}" }] }]);
    await expect(async () => agent(new Story().gets(fromAnn).turn())).rejects.toMatchObject({
      code: "scripted_failure",
      message: "no Hello",
    });
  });

  it("reports mail that matches no rule", async () => {
    const agent = scriptedAgent([{ when: { type: "response" }, do: say("x") }]);
    await expect(async () => agent(new Story().gets(fromAnn).turn())).rejects.toMatchObject({
      code: "no_rule",
      message: expect.stringContaining("a request from user 'ann'"),
    });
  });
});

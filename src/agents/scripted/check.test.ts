import { describe, expect, it } from "vitest";
import { formatPath } from "../../mail/swarm-file/problems.js";
import { findingsOf } from "../errors.js";
import { readScript } from "./check.js";

const SURROUNDINGS = { commTargets: ["weather", "math"], actions: ["calculate"] };

function problemsOf(params: unknown): string[] {
  try {
    readScript(params, SURROUNDINGS);
  } catch (error) {
    const findings = findingsOf(error);
    if (findings === undefined) throw error;
    return findings.map(({ at, message, hint }) => `${formatPath(at)}: ${message} — ${hint}`);
  }
  return [];
}

const act = (args: object) => ({ rules: [{ do: [{ act: { name: "calculate", args } }] }] });
const when = (conditions: object, text = "x") => ({
  rules: [{ when: conditions, do: [{ task_complete: text }] }],
});
const step = (value: object) => ({ rules: [{ do: [value] }] });

describe("a script is checked strictly", () => {
  it.each<[string, unknown, RegExp]>([
    ["no rules", {}, /^rules: is required/],
    ["an empty list", { rules: [] }, /^rules: /],
    [
      "an unknown key",
      { rules: [{ wen: {}, do: [{ await_message: true }] }] },
      /^rules\[0\]\.wen: .*did you mean 'when'/,
    ],
    ["an unknown condition", when({ form: "ann" }), /^rules\[0\]\.when\.form: .*did you mean 'from'/],
    ["an unknown type of message", when({ type: "reqest" }), /^rules\[0\]\.when\.type: expected/],
    [
      "an unknown step",
      step({ send_requst: {} }),
      /^rules\[0\]\.do\[0\]\.send_requst: .*did you mean 'send_request'/,
    ],
    [
      "two verbs in a step",
      step({ task_complete: "x", fail: "y" }),
      /^rules\[0\]\.do\[0\]: a step has exactly one verb/,
    ],
    [
      "a missing part",
      step({ send_request: { target: "math", body: "" } }),
      /send_request\.subject: is required/,
    ],
    [
      "a target that is not a comm target",
      step({ send_request: { target: "wether", subject: "", body: "" } }),
      /target: .*did you mean 'weather'/,
    ],
    [
      "an action that the agent lacks",
      step({ act: { name: "calculat" } }),
      /act\.name: .*did you mean 'calculate'/,
    ],
    ["a result of an unknown action", when({ result: "forecast" }), /when\.result: 'forecast' is not among/],
    [
      "a broken expression",
      when({ body: { matches: "(" } }),
      /^rules\[0\]\.when\.body: Invalid regular expression/,
    ],
    [
      "an invalid test",
      when({ body: { match: "x" } }),
      /^rules\[0\]\.when\.body\.match: .*did you mean 'matches'/,
    ],
    ["an unclosed placeholder", when({}, "{{body"), /do\[0\]\.task_complete: .*no closing/],
    ["an unknown placeholder", when({}, "{{boddy}}"), /unknown name 'boddy'/],
    ["a part that is missing", when({}, "{{match}}"), /is incomplete/],
    ["an unexpected part", when({}, "{{body.x}}"), /has no parts/],
    ["a missing group", when({ body: { matches: "(?<city>a)" } }, "{{match.citty}}"), /did you mean 'city'/],
    ["a missing numbered group", when({ body: { matches: "(a)" } }, "{{match.2}}"), /can never have a value/],
    ["an unknown earlier capture", when({}, "{{remember.city}}"), /no expression of any rule/],
    ["a condition on an unknown capture", when({ remembers: "city" }), /when\.remembers: /],
    ["an answer from an unknown agent", when({}, "{{answers.bob}}"), /comm_targets/],
    [
      "a type inside a text",
      act({ a: "x {{body:number}}" }),
      /args\.a: a type .* complete argument of an action/,
    ],
    ["an unknown type", act({ a: "{{body:date}}" }), /unknown type 'date'/],
    [
      "an unreachable rule",
      { rules: [{ do: [{ fail: "a" }] }, { do: [{ fail: "b" }] }] },
      /^rules\[1\]: this rule is unreachable/,
    ],
  ])("%s", (_, params, problem) => {
    expect(problemsOf(params)).toEqual([expect.stringMatching(problem)]);
  });

  it("all problems are reported together", () => {
    expect(problemsOf({ rules: [{ when: { form: "a" }, do: [{ replay: "x" }] }] })).toHaveLength(2);
  });

  it("a valid script is accepted", () => {
    expect(
      problemsOf(when({ body: { matches: "(?<city>a)(b)" } }, "{{match.city}}{{match.2}}{{answers.math|-}}")),
    ).toEqual([]);
  });
});

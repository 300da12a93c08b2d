import { describe, expect, it } from "vitest";
import { formatPath } from "../../mail/swarm-file/problems.js";
import { AgentParamsError } from "../errors.js";
import { readScript } from "./check.js";

const SURROUNDINGS = { commTargets: ["weather", "math"], actions: ["calculate"] };

function problemsOf(params: unknown): string[] {
  try {
    readScript(params, SURROUNDINGS);
  } catch (error) {
    if (!(error instanceof AgentParamsError)) throw error;
    return error.findings.map(({ at, message, hint }) => `${formatPath(at)}: ${message} — ${hint}`);
  }
  return [];
}

const act = (args: object) => ({ rules: [{ do: [{ act: { name: "calculate", args } }] }] });
const when = (conditions: object, text = "x") => ({
  rules: [{ when: conditions, do: [{ task_complete: text }] }],
});
const step = (value: object) => ({ rules: [{ do: [value] }] });

describe("a script is read strictly", () => {
  it.each<[string, unknown, RegExp]>([
    ["no rules", {}, /^rules: is required/],
    ["an empty list", { rules: [] }, /^rules: /],
    [
      "a key that is none",
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
      "a target out of reach",
      step({ send_request: { target: "wether", subject: "", body: "" } }),
      /target: .*did you mean 'weather'/,
    ],
    [
      "an action it does not have",
      step({ act: { name: "calculat" } }),
      /act\.name: .*did you mean 'calculate'/,
    ],
    ["a result it cannot have", when({ result: "forecast" }), /when\.result: 'forecast' is not among/],
    [
      "a broken expression",
      when({ body: { matches: "(" } }),
      /^rules\[0\]\.when\.body: Invalid regular expression/,
    ],
    [
      "a test that is none",
      when({ body: { match: "x" } }),
      /^rules\[0\]\.when\.body\.match: .*did you mean 'matches'/,
    ],
    ["an open placeholder", when({}, "{{body"), /do\[0\]\.task_complete: .*no closing/],
    ["an unknown placeholder", when({}, "{{boddy}}"), /there is no 'boddy'/],
    ["a part that is missing", when({}, "{{match}}"), /names nothing/],
    ["a part too many", when({}, "{{body.x}}"), /has no parts/],
    [
      "a group that is not there",
      when({ body: { matches: "(?<city>a)" } }, "{{match.citty}}"),
      /did you mean 'city'/,
    ],
    [
      "a numbered group that is not there",
      when({ body: { matches: "(a)" } }, "{{match.2}}"),
      /can never have a value/,
    ],
    ["a memory of nothing", when({}, "{{remember.city}}"), /no expression of any rule/],
    ["a condition on a memory of nothing", when({ remembers: "city" }), /when\.remembers: /],
    ["an answer from nobody", when({}, "{{answers.bob}}"), /comm_targets/],
    [
      "a type inside a text",
      act({ a: "x {{body:number}}" }),
      /args\.a: a type .* whole of an action's argument/,
    ],
    ["a type that is none", act({ a: "{{body:date}}" }), /there is no type 'date'/],
    [
      "a rule behind one that takes everything",
      { rules: [{ do: [{ fail: "a" }] }, { do: [{ fail: "b" }] }] },
      /^rules\[1\]: this rule is never reached/,
    ],
  ])("%s", (_, params, problem) => {
    expect(problemsOf(params)).toEqual([expect.stringMatching(problem)]);
  });

  it("lists all problems at once", () => {
    expect(problemsOf({ rules: [{ when: { form: "a" }, do: [{ replay: "x" }] }] })).toHaveLength(2);
  });

  it("accepts what is right", () => {
    expect(
      problemsOf(when({ body: { matches: "(?<city>a)(b)" } }, "{{match.city}}{{match.2}}{{answers.math|-}}")),
    ).toEqual([]);
  });
});

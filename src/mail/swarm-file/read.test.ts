import { describe, expect, it } from "vitest";
import { formatProblem, type SwarmFileProblem, swarmProblemsOf } from "./problems.js";
import { readSwarmFile } from "./read.js";

type Json = Record<string, unknown>;

const boss = {
  name: "boss",
  factory: "mail:supervisor",
  comm_targets: ["weather"],
  enable_entrypoint: true,
  can_complete_tasks: true,
};
const weather = { name: "weather", factory: "mail:agent", comm_targets: ["boss"], actions: ["look"] };
const look = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object" },
  function: "module:./a.js#look",
};

function swarm(changes: Json = {}): Json {
  return {
    name: "desk",
    version: "1.0.0",
    entrypoint: "boss",
    agents: [boss, weather],
    actions: [look],
    ...changes,
  };
}

function read(...swarms: readonly unknown[]) {
  return readSwarmFile(JSON.stringify(swarms));
}

function problemsOf(text: string): readonly SwarmFileProblem[] {
  try {
    readSwarmFile(text);
  } catch (error) {
    const problems = swarmProblemsOf(error);
    if (problems !== undefined) return problems;
    throw error;
  }
  return [];
}

describe("a swarm file", () => {
  it("gets its defaults", () => {
    const { swarms, warnings } = read(swarm());
    expect(warnings).toEqual([]);
    expect(swarms[0]).toMatchObject({
      public: false,
      enable_interswarm: false,
      agents: [{ name: "boss", tool_format: "responses", agent_params: {}, remote: false }, {}],
    });
  });

  it("may be an object with $schema", () => {
    const text = JSON.stringify({ $schema: "./swarms.schema.json", swarms: [swarm()] });
    expect(readSwarmFile(text).swarms).toHaveLength(1);
    const wrong = JSON.stringify({ schema: "x", swarms: [swarm({ verzion: 1 })] });
    expect(problemsOf(wrong).map(({ path }) => path)).toEqual(["schema", "swarms[0].verzion"]);
  });

  it("[MAIL-G-18] may be one swarm by itself", () => {
    expect(readSwarmFile(JSON.stringify(swarm())).swarms).toHaveLength(1);
    const [problem] = problemsOf(JSON.stringify(swarm({ verzion: 1 }), undefined, 2));
    expect(problem).toMatchObject({ path: "swarms[0].verzion", line: expect.any(Number) });
  });

  it("may contain remote agents", () => {
    const { factory: _, ...rest } = weather;
    const { swarms } = read(swarm({ agents: [boss, { ...rest, remote: true }] }));
    expect(swarms[0]?.agents).toMatchObject([{ remote: false }, { name: "weather", remote: true }]);
  });

  it("may omit the function of a breakpoint tool", () => {
    const { function: _, ...rest } = look;
    const { swarms } = read(swarm({ actions: [rest], breakpoint_tools: ["look"] }));
    expect(swarms[0]).toMatchObject({ actions: [rest], breakpoint_tools: ["look"] });
  });

  it("warns of keys without effect", () => {
    const agent = { ...boss, agent_params: { llm: "x", memory: true, tool_format: "responses" } };
    const own = { ...weather, factory: "module:./own.js", agent_params: { memory: 5 } };
    const { warnings } = read(swarm({ agents: [agent, own], enable_db_agent_histories: true }));
    expect(warnings.map(({ path }) => path)).toEqual([
      "swarms[0].agents[0].agent_params.memory",
      "swarms[0].agents[0].agent_params.tool_format",
      "swarms[0].enable_db_agent_histories",
    ]);
  });

  it("warns of an agent that lists other swarms without enable_interswarm", () => {
    const agents = [{ ...boss, comm_targets: ["weather", "x@lab"] }, weather];
    const { warnings } = read(swarm({ agents, enable_interswarm: true }));
    expect(warnings.map(({ path }) => path)).toEqual(["swarms[0].agents[0].comm_targets[1]"]);
  });

  it("is not checked for unknown actions while imports are unresolved", () => {
    const { swarms, warnings } = read(swarm({ actions: [], action_imports: ["module:./a.js#look"] }));
    expect(warnings).toEqual([]);
    expect(swarms[0]?.agents[1]).toMatchObject({ actions: ["look"] });
  });
});

const agentsWith = (changes: Json): Json => swarm({ agents: [boss, { ...weather, ...changes }] });

describe("a swarm file is rejected for", () => {
  it.each<[string, Json, RegExp]>([
    [
      "an unknown key of a swarm",
      swarm({ entry_point: "boss" }),
      /^swarms\[0\]\.entry_point: .*did you mean 'entrypoint'/,
    ],
    [
      "an unknown key of an agent",
      agentsWith({ comm_target: [] }),
      /agents\[1\]\.comm_target: .*did you mean 'comm_targets'/,
    ],
    ["a misplaced key", agentsWith({ llm: "x" }), /agents\[1\]\.llm: .*into agent_params/],
    ["a missing key", swarm({ version: undefined }), /^swarms\[0\]\.version: is required/],
    ["a wrong type", swarm({ public: "yes" }), /^swarms\[0\]\.public: expected boolean, received string/],
    [
      "a wrong value",
      agentsWith({ tool_format: "chat" }),
      /tool_format: expected one of "completions", "responses"/,
    ],
    [
      "the reserved name [MAIL-ADDR-04]",
      swarm({ agents: [boss, weather, { ...weather, name: "all" }] }),
      /agents\[2\]\.name: .*reserved/,
    ],
    [
      "a name with @",
      swarm({ agents: [boss, weather, { ...weather, name: "a@b" }] }),
      /agents\[2\]\.name: .*@/,
    ],
    [
      "a name with a space",
      swarm({ agents: [boss, weather, { ...weather, name: "a b" }] }),
      /agents\[2\]\.name: .*white space/,
    ],
    ["a swarm's name with a colon", swarm({ name: "a:b" }), /^swarms\[0\]\.name: .*:/],
    [
      "a duplicate name [MAIL-ADDR-02]",
      swarm({ agents: [boss, weather, weather] }),
      /agents\[2\]\.name: .*defined twice.*agents\[1\]/,
    ],
    [
      "an unknown entrypoint",
      swarm({ entrypoint: "bos" }),
      /^swarms\[0\]\.entrypoint: .*did you mean 'boss'/,
    ],
    [
      "an entrypoint without the flag",
      swarm({ entrypoint: "weather" }),
      /agents\[1\]: .*does not have enable_entrypoint/,
    ],
    [
      "no agent that completes tasks",
      swarm({ agents: [{ ...boss, can_complete_tasks: false }, weather] }),
      /^swarms\[0\]\.agents: no agent can complete tasks/,
    ],
    [
      "an unknown target",
      agentsWith({ comm_targets: ["bos"] }),
      /agents\[1\]\.comm_targets\[0\]: .*did you mean 'boss'/,
    ],
    [
      "a target in another swarm without enable_interswarm",
      agentsWith({ comm_targets: ["x@lab"] }),
      /comm_targets\[0\]: .*enable_interswarm/,
    ],
    ["all as a target", agentsWith({ comm_targets: ["all"] }), /comm_targets\[0\]: 'all' is not an agent/],
    [
      "the agent itself as a target",
      agentsWith({ comm_targets: ["weather"] }),
      /comm_targets\[0\]: .*lists itself/,
    ],
    [
      "no comm targets",
      agentsWith({ comm_targets: [] }),
      /agents\[1\]\.comm_targets: .*no comm_targets.*may work alone/,
    ],
    [
      "an unknown action",
      agentsWith({ actions: ["lok"] }),
      /agents\[1\]\.actions\[0\]: .*did you mean 'look'/,
    ],
    ["a MAIL tool among the actions", agentsWith({ actions: ["help"] }), /actions\[0\]: .*MAIL tool/],
    [
      "an action with the name of a MAIL tool",
      swarm({ actions: [look, { ...look, name: "help" }] }),
      /actions\[1\]\.name: .*MAIL tool/,
    ],
    ["a duplicate action", swarm({ actions: [look, look] }), /actions\[1\]\.name: .*defined twice/],
    [
      "an unknown breakpoint tool",
      swarm({ breakpoint_tools: ["loook"] }),
      /breakpoint_tools\[0\]: .*did you mean 'look'/,
    ],
    [
      "an unknown tool to exclude",
      swarm({ exclude_tools: ["helpp"] }),
      /^swarms\[0\]\.exclude_tools\[0\]: .*did you mean 'help'/,
    ],
    [
      "an action to exclude",
      agentsWith({ exclude_tools: ["look"] }),
      /agents\[1\]\.exclude_tools\[0\]: 'look' is an action/,
    ],
    ["an agent without a factory", agentsWith({ factory: undefined }), /agents\[1\]: .*has no factory/],
    ["a remote agent with a factory", agentsWith({ remote: true }), /agents\[1\]\.factory: .*remote/],
    [
      "an action without a function",
      swarm({ actions: [{ ...look, function: undefined }] }),
      /actions\[0\]: .*has no function/,
    ],
  ])("%s", (_, changed, expected) => {
    const problems = problemsOf(JSON.stringify([changed]));
    expect(problems.map((problem) => `${problem.path}: ${problem.message} — ${problem.hint}`)).toEqual([
      expect.stringMatching(expected),
    ]);
  });

  it("two swarms with the same name", () => {
    expect(problemsOf(JSON.stringify([swarm(), swarm()]))).toMatchObject([{ path: "swarms[1].name" }]);
  });

  it("a value that is not a list", () => {
    expect(problemsOf(JSON.stringify({ name: "desk" }))).toMatchObject([
      { path: "swarms", hint: expect.stringContaining("list") },
    ]);
  });
});

describe("problems", () => {
  it("are reported together, each with its position in the file", () => {
    const text = JSON.stringify(
      [swarm({ entrypoint: "bos", agents: [boss, { ...weather, comm_targets: ["bss"] }] })],
      null,
      2,
    );
    const problems = problemsOf(text);
    const lines = text.split("\n");
    expect(problems.map(({ path }) => path)).toEqual([
      "swarms[0].entrypoint",
      "swarms[0].agents[1].comm_targets[0]",
    ]);
    for (const [index, start] of ['"entrypoint"', '"bss"'].entries()) {
      const { line = 0, column = 0 } = problems[index] ?? {};
      expect(lines[line - 1]?.slice(column - 1).startsWith(start)).toBe(true);
    }
  });

  it("read well", () => {
    const [problem] = problemsOf('[\n {"name": "x", }]');
    expect(problem && formatProblem(problem)).toBe(
      "2:16 not valid JSON: unexpected comma before the closing brace",
    );
    expect(() => readSwarmFile("[]", "my.json")).toThrow(
      /^my\.json is not a valid swarm file \(1 problem\):\n {2}1:1 swarms: /,
    );
  });

  it("include duplicate keys", () => {
    const text = JSON.stringify([swarm()]).replace('"version"', '"name":"x","version"');
    expect(problemsOf(text)).toMatchObject([
      { path: "swarms[0].name", message: expect.stringContaining("duplicate") },
    ]);
  });
});

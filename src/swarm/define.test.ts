import { describe, expect, it } from "vitest";
import { defineAction } from "../actions/define.js";
import { swarmProblemsOf } from "../mail/swarm-file/problems.js";
import { defineAgent } from "./agent.js";
import { defineSwarm, type SwarmOptions } from "./define.js";
import { subswarm } from "./subswarm.js";

const look = defineAction({
  name: "look",
  description: "Looks.",
  parameters: { type: "object" },
  run: () => "",
});

const boss = defineAgent({
  name: "boss",
  commTargets: ["scout", "clerk"],
  enableEntrypoint: true,
  canCompleteTasks: true,
  run: (mail) => mail.complete("done"),
});
const scout = defineAgent({
  name: "scout",
  commTargets: ["boss", "clerk"],
  actions: [look],
  run: () => "seen",
});
const clerk = defineAgent({ name: "clerk", commTargets: ["boss"], actions: [look], remote: true });

const options: SwarmOptions = { name: "desk", agents: [boss, scout, clerk] };

function problemsOf(build: () => unknown): string[] {
  try {
    build();
  } catch (error) {
    const problems = swarmProblemsOf(error);
    if (problems === undefined) throw error;
    return problems.map(({ path, message, hint }) => `${path}: ${message} — ${hint}`);
  }
  return [];
}

describe("defineSwarm", () => {
  it("collects the actions of its agents, each once", () => {
    const swarm = defineSwarm(options);
    expect(swarm.actions).toEqual([look]);
    expect(swarm.agents.map(({ actions }) => actions)).toEqual([[], ["look"], ["look"]]);
    expect(swarm).toMatchObject({
      entrypoint: "boss",
      version: "0.0.0",
      public: false,
      enableInterswarm: false,
    });
    expect(swarm.agents.map(({ implementation }) => implementation.kind)).toEqual([
      "local",
      "local",
      "remote",
    ]);
  });

  it("reports problems with the names of the code", () => {
    const lost = defineAgent({ name: "lost", commTargets: ["bos"], actions: ["lok"], run: () => "" });
    expect(problemsOf(() => defineSwarm({ ...options, agents: [...options.agents, lost] }))).toEqual([
      "agents[3].commTargets[0]: unknown agent 'bos' — did you mean 'boss'?",
      "agents[3].actions[0]: unknown action 'lok' — did you mean 'look'?",
    ]);
    expect(problemsOf(() => defineSwarm({ ...options, entrypoint: "scout" }))).toEqual([
      expect.stringMatching(/^agents\[1\]: .*enableEntrypoint/),
    ]);
  });

  it("requires one entrypoint, or a default among several", () => {
    const second = { ...scout, enableEntrypoint: true };
    expect(problemsOf(() => defineSwarm({ name: "x", agents: [scout] }))).toEqual([
      expect.stringContaining("no agent is an entrypoint"),
    ]);
    expect(problemsOf(() => defineSwarm({ ...options, agents: [boss, second, clerk] }))).toEqual([
      expect.stringContaining("'boss', 'scout'"),
    ]);
    expect(defineSwarm({ ...options, agents: [boss, second, clerk], entrypoint: "scout" }).entrypoint).toBe(
      "scout",
    );
  });

  it("rejects two different actions with the same name", () => {
    expect(problemsOf(() => defineSwarm({ ...options, actions: [{ ...look }] }))).toEqual([
      expect.stringContaining("'look' is defined twice"),
    ]);
  });

  it("has a hash that depends only on its data", () => {
    const { hash } = defineSwarm(options);
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    const same = defineAgent({ ...scoutOptions(), run: () => "something else" });
    expect(defineSwarm({ ...options, agents: [boss, same, clerk] }).hash).toBe(hash);
    const changes: Partial<SwarmOptions>[] = [
      { version: "2.0.0" },
      { description: "new" },
      { agents: [boss, defineAgent({ ...scoutOptions(), description: "new", run: () => "" }), clerk] },
      { agents: [boss, { ...scout, origin: { rules: 1 } }, clerk] },
      { breakpointTools: ["look"] },
    ];
    const hashes = changes.map((change) => defineSwarm({ ...options, ...change }).hash);
    expect(new Set([hash, ...hashes]).size).toBe(changes.length + 1);
  });
});

function scoutOptions() {
  return { name: "scout", commTargets: ["boss", "clerk"], actions: [look] };
}

describe("subswarm", () => {
  const whole = defineSwarm({ ...options, breakpointTools: ["look", "help"] });

  it("keeps the named agents and the links between them", () => {
    const part = subswarm(whole, ["boss", "clerk"], { suffix: "-small" });
    expect(part).toMatchObject({ name: "desk-small", entrypoint: "boss", breakpointTools: ["look", "help"] });
    expect(part.agents.map(({ commTargets }) => commTargets)).toEqual([["clerk"], ["boss"]]);
    expect(part.actions).toEqual([look]);
    expect(part.hash).not.toBe(whole.hash);
  });

  it("[MAIL-G-18] has the suffix after a dash, as in the reference", () => {
    expect(subswarm(whole, ["boss", "clerk"], { suffix: "mini" }).name).toBe("desk-mini");
    expect(subswarm(whole, ["boss", "clerk"]).name).toBe("desk-sub");
  });

  it("removes unused actions", () => {
    const part = subswarm(whole, ["boss"]);
    expect(part.actions).toEqual([]);
    expect(part.breakpointTools).toEqual(["help"]);
  });

  it("must be a valid swarm itself", () => {
    expect(problemsOf(() => subswarm(whole, ["scout", "clerk"]))).toHaveLength(1);
    expect(problemsOf(() => subswarm(whole, ["boss", "scot"]))).toEqual([
      "names: unknown agent 'scot' — did you mean 'scout'?",
    ]);
  });
});

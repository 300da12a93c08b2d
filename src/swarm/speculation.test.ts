import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { FaultyDisk, openStoreOn } from "../../test/kit/faulty-driver.js";
import { openRoom } from "../../test/kit/rooms.js";
import { loopTurns, until } from "../../test/kit/waiting.js";
import { modelAgent } from "../agents/index.js";
import type { SwarmDefinition } from "../engine/definition.js";
import type { RuntimeLimits } from "../engine/runtime/index.js";
import { defineAgent } from "./agent.js";
import { defineSwarm } from "./define.js";
import { loadSwarmsFromText } from "./load.js";

const MODEL = modelAgent({ llm: "openai/none" }, { env: { OPENAI_API_KEY: "none" } });

/** Whether the agent's turn begins before its message is durable. */
async function startsEarly(
  traits: { readonly speculate?: boolean },
  limits: Partial<RuntimeLimits> = {},
): Promise<boolean> {
  let begun = 0;
  const agent = defineAgent({
    name: "me",
    enableEntrypoint: true,
    canCompleteTasks: true,
    run: (mail) => {
      begun++;
      mail.complete("done");
    },
    ...traits,
  });
  const disk = new FaultyDisk();
  const { room } = await openRoom({
    swarm: defineSwarm({ name: "solo", agents: [agent] }),
    store: await openStoreOn(disk),
    limits,
  });
  disk.hold();
  const asking = room.user("ann").ask("go");
  await until(() => disk.attempts > 0);
  await loopTurns(10);
  const early = begun > 0;
  disk.release();
  expect((await asking).response).toBe("done");
  expect(begun).toBe(1);
  return early;
}

function starts({ agents }: SwarmDefinition): Record<string, boolean | undefined> {
  return Object.fromEntries(
    agents.map(({ name, implementation }) => [
      name,
      implementation.kind === "local" ? implementation.speculate : undefined,
    ]),
  );
}

describe("a turn", () => {
  it("of a function agent begins before its mail is durable, unless the agent or the mailroom disables it", async () => {
    expect(await startsEarly({})).toBe(true);
    expect(await startsEarly({ speculate: false })).toBe(false);
    expect(await startsEarly({}, { speculation: false })).toBe(false);
  });
});

describe("a model agent", () => {
  it("starts on durable mail by default", () => {
    const traits = { name: "me", run: MODEL };
    expect(defineAgent(traits).implementation).toMatchObject({ speculate: false });
    expect(defineAgent({ ...traits, speculate: true }).implementation).toMatchObject({ speculate: true });
  });
});

describe("a swarm file", () => {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-speculation-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const agent = (name: string, more: object) => ({
    name,
    comm_targets: name === "a" ? [] : ["a"],
    ...more,
  });
  const load = async (agents: readonly object[]) => {
    const [first, ...rest] = agents;
    const entrypoint = { ...first, enable_entrypoint: true, can_complete_tasks: true };
    const swarm = { name: "solo", version: "1.0.0", entrypoint: "a", agents: [entrypoint, ...rest] };
    const [loaded] = await loadSwarmsFromText(JSON.stringify([swarm]), { directory });
    if (loaded === undefined) throw new Error("the file has no swarm");
    return loaded.definition;
  };
  const model = { factory: "mail:agent", agent_params: { llm: "openai/none", system: "" } };
  const scripted = { factory: "mail:scripted", agent_params: { rules: [{ do: [{ reply: "yes" }] }] } };

  it("defines how each agent starts; model agents wait for durable mail by default", async () => {
    const definition = await load([
      agent("a", scripted),
      agent("b", { ...scripted, speculate: false }),
      agent("c", model),
      agent("d", { ...model, speculate: true }),
    ]);
    expect(starts(definition)).toEqual({ a: undefined, b: false, c: false, d: true });
  });

  it("overrides the setting of an agent in a module", async () => {
    writeFileSync(
      join(directory, "agents.mjs"),
      `export const object = { speculate: false, run(mail) { mail.complete("done"); } };
       export const defined = { implementation: { kind: "local", speculate: false, run: (mail) => mail.complete("done") } };
       export const factory = () => Object.assign((mail) => mail.complete("done"), { speculate: false });`,
    );
    const made = (name: string) => ({ factory: `module:./agents.mjs#${name}` });
    const definition = await load([
      agent("a", made("object")),
      agent("b", made("defined")),
      agent("c", made("factory")),
      agent("d", { ...made("object"), speculate: true }),
    ]);
    expect(starts(definition)).toEqual({ a: false, b: false, c: false, d: true });
  });

  it("has another hash when an agent starts differently", async () => {
    const { hash } = await load([agent("a", scripted)]);
    expect((await load([agent("a", { ...scripted, speculate: false })])).hash).not.toBe(hash);
  });

  it("cannot set speculate for a remote agent", async () => {
    const remote = load([agent("a", scripted), agent("b", { remote: true, speculate: true })]);
    const error = await remote.catch((cause: unknown) => cause);
    expect(String(error)).toContain("remove speculate");
  });
});

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { deferred } from "../base/index.js";
import type { SwarmDefinition } from "../engine/definition.js";
import { loadSwarmsFromText } from "../swarm/load.js";
import { reloadOnChange } from "./reload.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mailroom-reload-"));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(folder, { recursive: true });
});

const clerk = {
  name: "clerk",
  factory: "mail:scripted",
  comm_targets: [],
  enable_entrypoint: true,
  can_complete_tasks: true,
  agent_params: { rules: [{ do: [{ task_complete: "done" }] }] },
};

async function swarm(version: string): Promise<SwarmDefinition> {
  const text = JSON.stringify([{ name: "desk", version, entrypoint: "clerk", agents: [clerk] }]);
  const [loaded] = await loadSwarmsFromText(text);
  if (loaded === undefined) throw new Error("one swarm");
  return loaded.definition;
}

it("the file that was written last wins, however long the one before took to read", async () => {
  const file = join(folder, "version");
  const slow = deferred<void>();
  const read: string[] = [];
  const used: string[] = [];
  const load = async () => {
    const version = await readFile(file, "utf8");
    read.push(version);
    const definition = await swarm(version);
    if (version === "1.0.0") await slow.promise;
    return definition;
  };
  const stop = reloadOnChange({
    file,
    swarm: "desk",
    load,
    use: async ({ version }) => void used.push(version),
    say: () => {},
  });
  /** What is done when a change has settled. */
  const write = async (version: string) => {
    await writeFile(file, version);
    await expect.poll(() => vi.getTimerCount()).toBeGreaterThan(0);
    vi.runAllTimers();
  };
  await write("1.0.0");
  await expect.poll(() => read.at(-1)).toBe("1.0.0");
  await write("2.0.0");
  // As long as it takes to read it, for those who would do so now.
  await load();
  slow.resolve();
  await expect.poll(() => [used.includes("1.0.0"), used.at(-1)]).toEqual([true, "2.0.0"]);
  stop();
});

/** A message that ends the process whenever it is handled is abandoned; everything else continues (decision B12). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TaskStatus } from "../../src/engine/ports.js";
import { openStore } from "../../src/store/index.js";
import { type CompiledChild, compileChild } from "./compile.js";
import { Life, type Mode } from "./process.js";

let child: CompiledChild;
let folder: string;

beforeAll(() => {
  child = compileChild();
  folder = mkdtempSync(join(tmpdir(), "mailroom-poison-"));
});
afterAll(() => {
  child?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

async function live(mode: Mode): Promise<Life> {
  const life = new Life({
    script: child.script,
    data: join(folder, "data"),
    effects: join(folder, "effects"),
    seed: 1,
    mode,
    durability: "fsync",
    recoveries: 3,
  });
  life.begin();
  await life.ended;
  return life;
}

it("a message that kills the process three times is abandoned, and the other tasks complete", async () => {
  // Posts harmless tasks and the poison together, so that they are running when the process dies.
  const first = await live("poison");
  expect(first.said.filter(({ ack }) => ack === "post").length).toBeGreaterThan(1);
  let deaths = 1;
  let last = await live("finish");
  for (; last.said.at(-1)?.ack !== "done" && deaths < 10; deaths += 1) last = await live("finish");
  expect(deaths).toBe(3);

  const store = await openStore({ directory: join(folder, "data") });
  const { tasks } = await store.tasks.list({ limit: 100 });
  const byStatus = (status: TaskStatus) => tasks.filter((task) => task.status === status);
  expect(byStatus("failed").map(({ taskId }) => taskId)).toEqual(["poison"]);
  expect(byStatus("completed").length).toBe(tasks.length - 1);
  const [poison] = byStatus("failed");
  const journal = (await store.read(poison?.key ?? "")).map(({ data }) => data).join("\n");
  await store.close();
  expect(journal).toContain("the process ended 3 times while this message was being handled");
});

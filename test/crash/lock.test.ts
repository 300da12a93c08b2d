/** A data directory belongs to one process (decision A1, decision C3). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Mailroom } from "../../src/library/mailroom.js";
import { type CompiledChild, compileChild } from "./compile.js";
import { openEffectLog } from "./effects.js";
import { Life } from "./process.js";
import { crashSwarm } from "./swarm.js";

let child: CompiledChild;
let folder: string;

beforeAll(() => {
  child = compileChild();
  folder = mkdtempSync(join(tmpdir(), "mailroom-lock-"));
});
afterAll(() => {
  child?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

it("a data directory refuses a second process with the id of the first, and opens as soon as that one is killed", async () => {
  const data = join(folder, "data");
  const effects = openEffectLog(join(folder, "effects"));
  const swarm = crashSwarm(effects);
  const holder = new Life({
    script: child.script,
    data,
    effects: join(folder, "effects"),
    seed: 1,
    mode: "hold",
    durability: "fsync",
    recoveries: 3,
  });
  try {
    holder.begin();
    await holder.hasSaid(1);
    const refusal = await Mailroom.open({ swarm, data }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "store_locked" });
    expect(String(refusal)).toContain(`process ${holder.pid} `);
  } finally {
    holder.kill();
    await holder.ended;
  }
  const mailroom = await Mailroom.open({ swarm, data });
  await mailroom.close();
  effects.close();
});

/** The key–value memory of instances, through the actions and the real store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defineAgent, defineSwarm, type KeyValueStore, Mailroom, memoryActions } from "../../src/index.js";

/** Does what the user writes: `remember key value`. */
const swarm = () =>
  defineSwarm({
    name: "notes",
    agents: [
      defineAgent({
        name: "keeper",
        enableEntrypoint: true,
        canCompleteTasks: true,
        actions: Object.values(memoryActions()),
        run: (mail) => {
          if (mail.result !== undefined) return mail.complete(mail.result.content);
          const [name = "", key, value] = mail.body.split(" ");
          mail.act(name, {
            ...(key !== undefined && { [name === "list_memories" ? "prefix" : "key"]: key }),
            ...(value && { value }),
          });
        },
      }),
    ],
  });

describe("memory", () => {
  let directory: string;
  let mailroom: Mailroom;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "mailroom-memory-"));
    mailroom = await Mailroom.open({ swarm: swarm(), data: directory });
  });
  afterEach(async () => {
    await mailroom.close();
    rmSync(directory, { recursive: true });
  });
  const say = async (user: string, text: string) => (await mailroom.user(user).ask(text)).response;

  it("[AGT-ACT-08] outlives tasks and restarts, and belongs to one instance", async () => {
    await say("ann", "remember color red");
    await say("ann", "remember color blue");
    expect(await say("ann", "recall color")).toBe("blue");
    await mailroom.close();
    mailroom = await Mailroom.open({ swarm: swarm(), data: directory });
    expect(await say("ann", "recall color")).toBe("blue");
    expect(await say("bob", "recall color")).toBe("nothing is stored under 'color'");
    expect((await mailroom.admin("ann").ask("recall color")).response).toContain("nothing is stored");
    expect(await say("bob", "list_memories")).toBe("nothing is stored");
  });

  it("lists by prefix and forgets", async () => {
    for (const key of ["a%b", "a_c", "b"]) await say("ann", `remember ${key} x`);
    expect(await say("ann", "list_memories a")).toBe("a%b\na_c");
    expect(await say("ann", "list_memories a%")).toBe("a%b");
    expect(await say("ann", "forget b")).toBe("forgot 'b'");
    expect(await say("ann", "forget b")).toBe("nothing was stored under 'b'");
    expect(await say("ann", "list_memories")).toBe("a%b\na_c");
  });

  it("can be kept elsewhere", async () => {
    const kept = new Map<string, string>();
    const memory: KeyValueStore = {
      get: async ({ id }, key) => {
        const value = kept.get(`${id}/${key}`);
        return value === undefined ? undefined : { key, value, updatedAt: 0 };
      },
      set: async ({ id }, key, value) => void kept.set(`${id}/${key}`, value),
      delete: async ({ id }, key) => kept.delete(`${id}/${key}`),
      list: async () => [],
    };
    await using other = await Mailroom.open({ swarm: swarm(), data: false, memory });
    await other.user("ann").ask("remember color green");
    expect(kept.get("ann/color")).toBe("green");
    expect((await other.user("ann").ask("recall color")).response).toBe("green");
  });
});

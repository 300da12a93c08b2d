/** What the reference's commands can do, ours can: those that need no peer, on a data directory without a server. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Folder, folder, run } from "../cli/cli.js";
import { meshCommand } from "./command.js";

let place: Folder;

beforeEach(async () => {
  place = await folder();
});
afterEach(() => place[Symbol.asyncDispose]());

async function ask(...words: string[]) {
  const { code, out } = await meshCommand([...words, "--data", place.path]);
  expect({ words, code }).toEqual({ words, code: 0 });
  return JSON.parse(out);
}
const init = (...words: string[]) =>
  ask("init", "--agent-id", "alice", "--endpoint", "https://alice.example.com/swarm", ...words);

describe("mesh init", () => {
  it("does not touch an agent that is there; --force puts another in its place and keeps the old key", async () => {
    const first = await init();
    expect(first).toMatchObject({
      status: "initialized",
      agent_id: "alice",
      endpoint: "https://alice.example.com/swarm",
      public_key: expect.stringMatching(/^.{43}=$/),
      config_path: join(place.path, "mesh", "agent.json"),
    });
    const keyFile = join(place.path, "mesh", "agent.key");
    const key = await readFile(keyFile);
    const other = ["--agent-id", "al", "--endpoint", "https://al.example.com/swarm"];
    expect((await meshCommand(["init", ...other, "--data", place.path])).code).toBe(1);
    expect(await readFile(keyFile)).toEqual(key);

    const second = await ask("init", "-a", "al", "-e", "https://al.example.com/swarm", "--force");
    expect(second).toMatchObject({ agent_id: "al", endpoint: "https://al.example.com/swarm" });
    expect(second.public_key).not.toBe(first.public_key);
    expect(await ask("status")).toMatchObject({ agent_id: "al", public_key: second.public_key });
    const kept = (await readdir(join(place.path, "mesh"))).filter((name) => name.endsWith(".old"));
    expect(await Promise.all(kept.map((name) => readFile(join(place.path, "mesh", name))))).toEqual([key]);
  });
});

describe("mesh status and config", () => {
  it("tell who the agent is, and with --verbose how each of its swarms is doing", async () => {
    await init();
    const { swarm_id } = await ask("create", "--name", "Lab", "--require-approval");
    await ask("mute", "--swarm", "lab");
    const status = await ask("status");
    expect(status).toMatchObject({
      status: "initialized",
      swarm_count: 1,
      muted_agents: [],
      muted_swarms: [swarm_id],
    });
    expect(status).not.toHaveProperty("swarms");
    expect((await ask("status", "--verbose")).swarms).toMatchObject([
      {
        swarm_id,
        name: "Lab",
        alias: "lab",
        master: "alice",
        member_count: 1,
        muted: true,
        pending_joins: 0,
        // The note of the mute.
        inbox: { unread: 1 },
        outbox: { sent: 0, delivered: 0, failed: 0 },
      },
    ]);
  });

  it("say which swarm is meant when none is named", async () => {
    await init();
    expect(await ask("config")).toMatchObject({
      default_swarm: null,
      resolved_swarm_id: null,
      resolved_via: null,
    });
    const { swarm_id } = await ask("create", "--name", "Lab");
    expect(await ask("config")).toMatchObject({
      resolved_swarm_id: swarm_id,
      resolved_via: "the only swarm",
    });
    await ask("create", "--name", "Den");
    expect(await ask("config")).toMatchObject({ resolved_swarm_id: null, resolved_via: null });
    expect(await ask("config", "--swarm", "lab")).toMatchObject({
      resolved_swarm_id: swarm_id,
      resolved_via: "--swarm",
    });
  });
});

describe("mesh send", () => {
  it("says which flag is missing when there is nothing to send", async () => {
    await init();
    await ask("create", "--name", "Lab");
    const send = (...words: string[]) =>
      run(["mesh", "send", "--data", place.path, ...words], { cwd: place.path, input: "" });
    expect(await send()).toMatchObject({ code: 2, stderr: expect.stringContaining("--message is missing") });
    expect(await send("--message", "")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--message is empty"),
    });
  });
});

describe("mesh purge", () => {
  beforeEach(async () => {
    await init();
    await ask("create", "--name", "Lab");
    // The note of the mute is a message like others.
    await ask("mute", "--swarm", "lab");
    const [{ message_id }] = (await ask("messages")).messages;
    await ask("messages", "--delete", message_id);
  });

  it("removes deleted messages when they are old enough, or with --force at once", async () => {
    await ask("purge", "--messages", "--yes");
    expect(await ask("messages", "--count")).toMatchObject({ deleted: 1 });
    expect(await ask("purge", "--messages", "--force", "-y")).toMatchObject({
      status: "purged",
      messages: true,
      retention_hours: 0,
    });
    expect(await ask("messages", "--count")).toMatchObject({ deleted: 0 });
  });

  it.each([["--sessions"], ["--timeout-minutes", "5"]])(
    "removes nothing when it is asked for sessions, of which there are none: %s",
    async (...flags) => {
      const words = ["mesh", "purge", "--messages", "--force", "--yes", ...flags, "--data", place.path];
      expect(await run(words, { cwd: place.path })).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("there are no sessions to purge"),
      });
      expect(await ask("messages", "--count")).toMatchObject({ deleted: 1 });
    },
  );
});

describe("mesh export and import", () => {
  it("tell what the file had", async () => {
    await init();
    await ask("create", "--name", "Lab");
    await ask("mute", "--agent", "eve");
    const file = join(place.path, "saved.json");
    await ask("export", "--output", file);
    await ask("unmute", "--agent", "eve");
    expect(await ask("import", "--input", file, "--yes")).toEqual({
      status: "imported",
      source: file,
      merge: false,
      schema_version: "1.0.0",
      swarms: 1,
      public_keys: 0,
      muted_agents: 1,
      muted_swarms: 0,
      inbox: 0,
      conflicts: [],
    });
    expect((await ask("status")).muted_agents).toEqual(["eve"]);
  });
});

/** Commands on a data directory without a server: reserved names, and the permissions of written files. */
import { execFileSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { chmod, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore } from "../../src/store/index.js";
import { type Folder, folder } from "../cli/cli.js";
import { meshCommand } from "./command.js";

let place: Folder;
beforeEach(async () => {
  place = await folder();
  await ask("init", "--agent-id", "alice", "--endpoint", "https://alice.example.com/swarm");
});
afterEach(() => place[Symbol.asyncDispose]());

const data = () => join(place.path, "data");
const config = () => join(place.path, "mail.toml");

async function ask(...words: string[]) {
  const { code, out } = await meshCommand([...words, "--data", data()]);
  expect({ words, code }).toEqual({ words, code: 0 });
  return JSON.parse(out);
}

it("an alias cannot be a name that a server would reserve for others", async () => {
  const swarmFile = join(place.path, "swarms.json");
  const agent = {
    name: "desk",
    factory: "mail:scripted",
    comm_targets: [],
    enable_entrypoint: true,
    can_complete_tasks: true,
  };
  const rules = { agent_params: { rules: [{ do: [{ task_complete: "done" }] }] } };
  const swarm = { name: "shop", version: "0.1.0", entrypoint: "desk", agents: [{ ...agent, ...rules }] };
  await writeFile(swarmFile, JSON.stringify([swarm]));
  const registry = join(place.path, "registry.json");
  const endpoints = { filed: { swarm_name: "filed", base_url: "https://filed.example.com" } };
  await writeFile(registry, JSON.stringify({ endpoints }));
  await writeFile(
    config(),
    [
      "[server.swarm]",
      `source = ${JSON.stringify(swarmFile)}`,
      `registry = ${JSON.stringify(registry)}`,
      "[a2a.agents.helper]",
      'url = "https://helper.example.com/"',
    ].join("\n"),
  );
  const store = await openStore({ directory: data() });
  const entry = JSON.stringify({ baseUrl: "https://kept.example.com" });
  const put = { kind: "federation.swarm.put", name: "kept", entry };
  await store.commit({ appends: [], rows: [put] });
  await store.close();

  for (const name of ["helper", "shop", "filed", "kept"]) {
    expect((await ask("create", "--config", config(), "--name", name)).alias).toBe(`${name}-2`);
    const wanted = ["create", "--config", config(), "--data", data(), "--name", "x", "--alias", name];
    expect((await meshCommand(wanted)).code).toBe(1);
  }
  expect((await ask("create", "--config", config(), "--name", "free")).alias).toBe("free");
});

it("an invalid swarm file does not prevent mesh commands", async () => {
  await writeFile(join(place.path, "swarms.json"), "{");
  await writeFile(config(), `[server.swarm]\nsource = "swarms.json"\n`);
  expect(await ask("create", "--config", config(), "--name", "Lab")).toMatchObject({ alias: "lab" });
});

it("an export is readable by its owner only, even if it replaces a file that others could read", async () => {
  const output = join(place.path, "state.json");
  await writeFile(output, "old");
  await chmod(output, 0o644);
  await ask("export", "--output", output);
  expect((await stat(output)).mode & 0o777).toBe(0o600);
});

it("an export to a pipe is written into it and does not replace it", async () => {
  const pipe = join(place.path, "pipe");
  execFileSync("sh", ["-c", `mkfifo "$0"`, pipe]);
  const read = text(createReadStream(pipe));
  await ask("export", "--output", pipe);
  expect(JSON.parse(await read)).toMatchObject({ agent_id: "alice" });
  expect((await stat(pipe)).isFIFO()).toBe(true);
});

/** The MCP servers of a definition are closed when it is replaced or never activated. */
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defineAction, defineAgent, defineSwarm, Mailroom } from "../../src/index.js";
import { folder, serve } from "../cli/cli.js";
import { gate } from "../http/harness.js";
import { served } from "../kit/served.js";
import { PROGRAM, STDIO } from "./everything.js";

const swarm = (version: string, name = "desk") => ({
  name,
  version,
  entrypoint: "clerk",
  mcp_servers: { everything: STDIO },
  agents: [
    {
      name: "clerk",
      factory: "mail:scripted",
      comm_targets: [],
      enable_entrypoint: true,
      can_complete_tasks: true,
      actions: ["everything__*"],
      agent_params: { rules: [{ do: [{ task_complete: "x" }] }] },
    },
  ],
});

/** Number of running MCP servers that this process started. */
function programs(): number {
  const children = execFileSync("ps", ["--ppid", String(process.pid), "-o", "args="], { encoding: "utf8" });
  return children.split("\n").filter((line) => line.includes(PROGRAM)).length;
}

describe("a definition with MCP servers", { timeout: 120_000 }, () => {
  it("closes them when another definition replaces it", async () => {
    await using here = await folder();
    const server = await served(JSON.stringify([swarm("1")]), "", here.path);
    expect(programs()).toBe(1);
    for (const version of ["2", "3"]) {
      await writeFile(join(here.path, "swarms.json"), JSON.stringify([swarm(version)]));
      server.running.mailroom.runtime.redefine(await server.running.loadSwarm());
    }
    await expect.poll(programs, { timeout: 20_000 }).toBe(1);
    await server[Symbol.asyncDispose]();
    expect(programs()).toBe(0);
  });

  it("that is loaded over HTTP and not activated closes them", async () => {
    await using server = await served(
      JSON.stringify([
        { ...swarm("1"), mcp_servers: {}, agents: [{ ...swarm("1").agents[0], actions: [] }] },
      ]),
      "[server.swarm]\nallow_modules = true\n",
    );
    const load = async (...swarms: object[]) => {
      const response = await fetch(`${server.url}/swarms/load`, {
        method: "POST",
        headers: { authorization: "Bearer admin:eve", "content-type": "application/json" },
        body: JSON.stringify({ json: JSON.stringify(swarms) }),
      });
      return response.status;
    };
    expect(await load(swarm("2", "other"))).toBe(409);
    expect(await load(swarm("2"), swarm("2", "other"))).toBe(400);
    expect(await load(swarm("2"), { ...swarm("2", "other"), entrypoint: "nobody" })).toBe(400);
    expect(programs()).toBe(0);
  });

  it("does not prevent a server that reloaded it from exiting", async () => {
    await using here = await folder();
    const file = join(here.path, "swarms.json");
    await writeFile(file, JSON.stringify([swarm("1")]));
    const reloaded = gate();
    const server = await serve(
      ["--swarm", file, "--reload", "--data", join(here.path, "data")],
      { cwd: here.path },
      (line) => {
        if (line.includes("reloaded")) reloaded.open();
      },
    );
    await writeFile(file, JSON.stringify([swarm("2")]));
    await reloaded.opened;
    server.child.kill("SIGTERM");
    await server.ended;
  });
});

it("a definition is closed only after its running actions have ended", async () => {
  const [begun, finish] = [gate(), gate()];
  const steps: string[] = [];
  const work = defineAction({
    name: "work",
    description: "Works",
    parameters: { type: "object", properties: {} },
    async run() {
      begun.open();
      await finish.opened;
      steps.push("worked");
      return "done";
    },
  });
  const closed = gate();
  const definition = defineSwarm({
    name: "desk",
    agents: [
      defineAgent({
        name: "clerk",
        enableEntrypoint: true,
        canCompleteTasks: true,
        actions: [work],
        run: (mail) => {
          const result = mail.resultOf(work);
          if (result === undefined) mail.act(work, {});
          else mail.complete(result.content);
        },
      }),
    ],
  });
  const close = async () => {
    steps.push("closed");
    closed.open();
  };
  await using mailroom = await Mailroom.open({ swarm: { ...definition, close }, data: false });
  const { outcome } = await mailroom.user("ann").post("go");
  await begun.opened;
  mailroom.runtime.redefine({ ...definition, hash: "two" });
  finish.open();
  expect((await outcome).message.message.body).toBe("done");
  await closed.opened;
  expect(steps).toEqual(["worked", "closed"]);
});

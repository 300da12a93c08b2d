/** The registry file at startup: other entries in it must survive. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { Federation } from "../../src/federation/index.js";
import { openStore } from "../../src/store/index.js";
import { testSwarm } from "./agents.js";
import { openTestServer, type TestServer } from "./servers.js";

const LAN = { swarm_name: "lan", base_url: "http://10.0.0.5:8000", version: "1.3", note: "behind the door" };
const ODD = { comment: "this one has no URL" };

function registryFile(endpoints: Readonly<Record<string, unknown>>): string {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-registry-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "registry.json");
  writeFileSync(path, JSON.stringify({ local_swarm_name: "alpha", endpoints }));
  return path;
}

async function start(path: string): Promise<{ server: TestServer; problems: string[] }> {
  const problems: string[] = [];
  const server = await openTestServer({
    swarm: { ...testSwarm("alpha", []), description: "the desk", keywords: ["paper"] },
    registryFile: path,
    isNameTaken: (name) => name === "lab",
    onProblem: ({ message }) => problems.push(message),
  });
  return { server, problems };
}

it("keeps unusable entries and reports the reason for each", async () => {
  const path = registryFile({ lan: LAN, odd: ODD });
  const { server, problems } = await start(path);
  expect(problems).toEqual([
    expect.stringMatching(/'lan' was not imported: .*allow-list/),
    expect.stringMatching(/'odd' was not imported: .*base URL/),
  ]);
  await server.federation.registry.register({ name: "near", baseUrl: "http://127.0.0.1:9", volatile: false });
  await server.close();
  const file = JSON.parse(readFileSync(path, "utf8"));
  expect(file).toMatchObject({
    local_swarm_description: "the desk",
    local_swarm_keywords: ["paper"],
    local_swarm_public: true,
    endpoints: { lan: LAN, odd: ODD, near: { swarm_name: "near" } },
  });
  // With another setting it is imported.
  const store = await openStore({ path: ":memory:" });
  const parts = { store, clock: systemClock, ids: systemIds, swarm: "alpha", report: () => {} };
  const settings = { allow: ["10.0.0.0/8"] };
  const federation = await Federation.open({ ...parts, settings, registryFile: path });
  expect(federation.registry.get("lan")).toMatchObject({ baseUrl: LAN.base_url });
  await federation.close();
  await store.close();
});

it("is not written when a start changes nothing", async () => {
  const path = registryFile({ lan: LAN });
  await (await start(path)).server.close();
  const { ino } = statSync(path);
  await (await start(path)).server.close();
  expect(statSync(path).ino).toBe(ino);
});

it("with a name that another carrier uses is reported at startup", async () => {
  const { server, problems } = await start(registryFile({ lab: { base_url: "http://127.0.0.1:9" } }));
  await server.close();
  expect(problems).toEqual([expect.stringContaining("the name of swarm 'lab' is used by another carrier")]);
});

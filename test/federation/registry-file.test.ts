/** The registry file of a server that starts: it is somebody's, and nothing in it may be lost. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Federation } from "../../src/federation/index.js";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { openStore } from "../../src/store/index.js";
import { houseSwarm } from "./agents.js";
import { type House, openHouse } from "./house.js";

const LAN = { swarm_name: "lan", base_url: "http://10.0.0.5:8000", version: "1.3", note: "behind the door" };
const ODD = { comment: "this one has no URL" };

function registryFile(endpoints: Readonly<Record<string, unknown>>): string {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-registry-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "registry.json");
  writeFileSync(path, JSON.stringify({ local_swarm_name: "alpha", endpoints }));
  return path;
}

async function start(path: string): Promise<{ house: House; problems: string[] }> {
  const problems: string[] = [];
  const house = await openHouse({
    swarm: { ...houseSwarm("alpha", []), description: "the desk", keywords: ["paper"] },
    registryFile: path,
    isNameTaken: (name) => name === "lab",
    onProblem: ({ message }) => problems.push(message),
  });
  return { house, problems };
}

it("keeps entries that cannot be used, and says which and why", async () => {
  const path = registryFile({ lan: LAN, odd: ODD });
  const { house, problems } = await start(path);
  expect(problems).toEqual([
    expect.stringMatching(/'lan' is not taken over: .*allow-list/),
    expect.stringMatching(/'odd' is not taken over: .*base URL/),
  ]);
  await house.federation.registry.register({ name: "near", baseUrl: "http://127.0.0.1:9", volatile: false });
  await house.close();
  const file = JSON.parse(readFileSync(path, "utf8"));
  expect(file).toMatchObject({
    local_swarm_description: "the desk",
    local_swarm_keywords: ["paper"],
    local_swarm_public: true,
    endpoints: { lan: LAN, odd: ODD, near: { swarm_name: "near" } },
  });
  // With another setting it is taken over.
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
  await (await start(path)).house.close();
  const { ino } = statSync(path);
  await (await start(path)).house.close();
  expect(statSync(path).ino).toBe(ino);
});

it("with a name that something else here has is reported when the server starts", async () => {
  const { house, problems } = await start(registryFile({ lab: { base_url: "http://127.0.0.1:9" } }));
  await house.close();
  expect(problems).toEqual([expect.stringContaining("'lab' has the name of something else here")]);
});

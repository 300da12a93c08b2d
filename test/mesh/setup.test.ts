/** `mesh init`, and opening the agent that it created. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { initMesh, openMesh, readIdentity, rotateKeyFile } from "../../src/mesh/setup.js";
import { openStore } from "../../src/store/index.js";
import { localClient } from "./kit.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mesh-setup-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("mesh init", () => {
  it.each([
    "http://d.example.com/swarm",
    "https://203.0.113.7/swarm",
    "https://localhost/swarm",
    "https://[::1]/swarm",
    "https://intranet/swarm",
  ])("[ASP-INFR-03] mesh init refuses %s, which has no public name", (endpoint) => {
    expect(() => initMesh({ directory, agentId: "dora", endpoint })).toThrow(/endpoint/);
    expect(() => readIdentity(directory)).toThrow(/mesh init/);
  });

  it("mesh init creates a key and an identity once, with any name for development", () => {
    const endpoint = "https://localhost:8443/swarm";
    expect(() => initMesh({ directory, agentId: "broadcast", endpoint, dev: true })).toThrow(/broadcast/);
    initMesh({ directory, agentId: "dora", endpoint, dev: true });
    expect(readIdentity(directory)).toEqual({ agentId: "dora", endpoint, dev: true });
    expect(statSync(join(directory, "mesh", "agent.json")).mode & 0o777).toBe(0o600);
    expect(() => initMesh({ directory, agentId: "dora", endpoint: "https://d.example.com/swarm" })).toThrow(
      /exists/,
    );
  });

  it("the agent is opened with the key that mesh init created, until it is rotated", async () => {
    const { publicKey } = initMesh({ directory, agentId: "dora", endpoint: "https://d.example.com/swarm" });
    const store = await openStore({ path: ":memory:" });
    const open = () =>
      openMesh({
        directory,
        store,
        http: localClient(),
        clock: systemClock,
        ids: systemIds,
        report: () => undefined,
      });
    const agent = await open();
    expect(agent.context.pair.publicKey.text).toBe(publicKey);
    const { publicKey: changed } = await rotateKeyFile(directory, agent);
    expect(changed).not.toBe(publicKey);
    expect(agent.context.pair.publicKey.text).toBe(changed);
    await agent.close();
    const again = await open();
    expect(again.context.pair.publicKey.text).toBe(changed);
    await again.close();
    await store.close();
  });
});

/** `/swarms/load` and its precedence (decision D5), and a custom registry. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SwarmListing, SwarmRegistry } from "../../src/doors/federation/swarm-listing.js";
import { loadSwarmsFromText } from "../../src/swarm/load.js";
import { fieldOf, type Harness, startServer } from "./harness.js";

let data: string;
let harness: Harness | undefined;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "mailroom-load-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  rmSync(data, { recursive: true, force: true });
});

function swarmText(answer: string, name = "desk", version = "1.0.0"): string {
  return JSON.stringify({
    name,
    version,
    entrypoint: "clerk",
    agents: [
      {
        name: "clerk",
        factory: "mail:scripted",
        comm_targets: [],
        enable_entrypoint: true,
        can_complete_tasks: true,
        agent_params: { rules: [{ do: [{ task_complete: answer }] }] },
      },
    ],
  });
}

async function configured(text: string) {
  const [loaded] = await loadSwarmsFromText(`[${text}]`);
  if (loaded === undefined) throw new Error("one swarm");
  return loaded.definition;
}

const ask = async (at: Harness) =>
  fieldOf((await at.call("/message", { token: "user-token", json: { body: "who?" } })).body, "response");
const load = (at: Harness, json: string) => at.call("/swarms/load", { token: "admin-token", json: { json } });

describe("POST /swarms/load", () => {
  it("[MAIL-REST-10] replaces the definition, survives restarts, and yields to a changed file", async () => {
    const swarm = await configured(swarmText("the file"));
    harness = await startServer({ room: { data, swarm } });
    expect(await ask(harness)).toBe("the file");
    expect(await load(harness, swarmText("loaded", "desk", "1.1.0"))).toMatchObject({
      status: 200,
      body: { status: "success", swarm_name: "desk" },
    });
    expect(await ask(harness)).toBe("loaded");
    const dump = await harness.call("/swarms/dump", { token: "admin-token" });
    expect(dump.body).toMatchObject({ status: "dumped", swarm_name: "desk", swarm: { version: "1.1.0" } });
    expect(dump.body).toMatchObject({ limits: { turns: 1_024, turn_timeout_ms: 600_000 } });
    await harness.close();

    harness = await startServer({ room: { data, swarm } });
    expect(await ask(harness)).toBe("loaded");
    await harness.close();

    const edited = await configured(swarmText("the file, edited", "desk", "1.2.0"));
    harness = await startServer({ room: { data, swarm: edited } });
    expect(await ask(harness)).toBe("the file, edited");
    await harness.close();

    harness = await startServer({ room: { data, swarm } });
    expect(await ask(harness)).toBe("the file");
  });

  it("takes precedence over the file reloaded before it, and yields to one reloaded later", async () => {
    harness = await startServer({ room: { data, swarm: await configured(swarmText("file 1")) } });
    await harness.server.definition.use(await configured(swarmText("file 2")));
    expect(await ask(harness)).toBe("file 2");
    expect((await load(harness, swarmText("loaded"))).status).toBe(200);
    await harness.close();
    harness = await startServer({ room: { data, swarm: await configured(swarmText("file 2")) } });
    expect(await ask(harness)).toBe("loaded");
    await harness.server.definition.use(await configured(swarmText("file 3")));
    await harness.server.definition.use(await configured(swarmText("file 2")));
    expect(await ask(harness)).toBe("file 2");
    await harness.close();
    harness = await startServer({ room: { data, swarm: await configured(swarmText("file 2")) } });
    expect(await ask(harness)).toBe("file 2");
  });

  it("rejects another name, code, and invalid input, and changes nothing", async () => {
    const swarm = await configured(swarmText("the file"));
    harness = await startServer({ room: { data, swarm } });
    expect(await load(harness, swarmText("x", "other"))).toMatchObject({
      status: 409,
      body: { code: "swarm_name_differs" },
    });
    const withCode = swarmText("x").replace("mail:scripted", "module:./evil.js#default");
    expect(await load(harness, withCode)).toMatchObject({ status: 400, body: { code: "bad_swarm_file" } });
    for (const text of ["{}", "[]", "nonsense", `[${swarmText("a")},${swarmText("b", "two")}]`]) {
      expect((await load(harness, text)).status, text).toBe(400);
    }
    expect((await harness.call("/swarms/load", { token: "user-token", json: { json: "{}" } })).status).toBe(
      401,
    );
    expect(await ask(harness)).toBe("the file");
  });
});

describe("the swarm registry", () => {
  it("is listed and written; without one, registration fails", async () => {
    const known: SwarmListing[] = [];
    const registry: SwarmRegistry = {
      list: async (scope) => (scope === "all" ? known : []),
      async register({ name, baseUrl }, rows) {
        expect(rows).toEqual([]);
        known.push({
          swarm_name: name,
          base_url: baseUrl,
          version: null,
          last_seen: null,
          is_active: false,
          latency: null,
          swarm_description: null,
          keywords: [],
          metadata: null,
        });
      },
    };
    harness = await startServer({ registry, publicUrl: "https://alpha.example" });
    const { call } = harness;
    const json = { swarm_name: "beta", base_url: "https://beta.example", auth_token: "secret" };
    const reply = await call("/swarms/register", { token: "admin-token", json });
    expect(reply).toMatchObject({ status: 200, body: { status: "registered", swarm_name: "beta" } });
    const names = (body: unknown) => {
      const swarms = fieldOf(body, "swarms");
      return Array.isArray(swarms) ? swarms.map((swarm) => fieldOf(swarm, "name")) : [];
    };
    expect(names((await call("/swarms")).body)).toEqual(["alpha"]);
    const seen = await call("/swarms", { token: "user-token" });
    expect(names(seen.body)).toEqual(["alpha", "beta"]);
    expect(fieldOf(seen.body, "swarms", "0", "base_url")).toBe("https://alpha.example");
    await harness.close();
    harness = await startServer();
    const refused = await harness.call("/swarms", { token: "admin-token", json });
    expect(refused).toMatchObject({ status: 503, body: { code: "no_registry" } });
  });
});

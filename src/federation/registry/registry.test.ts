import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ScriptedClient } from "../../../test/federation/scripted-client.js";
import { replaceFile, systemIds } from "../../base/node.js";
import { createGuard } from "../../net/index.js";
import { openStore } from "../../store/index.js";
import { VirtualClock } from "../../testing/virtual-clock.js";
import { Federation } from "../federation.js";
import { generateSigningKey, readSigningKey } from "../wrapper/signature.js";
import { discover, readSwarmList } from "./discovery.js";
import { formatRegistryFile, parseRegistryFile, readRegistryFile } from "./file.js";
import { SwarmRegistry } from "./registry.js";
import { readSelfDescription } from "./self-description.js";

const ROOT_1_3 = {
  name: "mail",
  protocol_version: "1.3",
  swarm: { name: "beta", description: "weather", keywords: ["rain"], public: true, entrypoint: "chief" },
  status: "running",
  uptime: 3,
};

let client: ScriptedClient;
let env: Record<string, string>;
const clock = new VirtualClock();

beforeEach(() => {
  client = new ScriptedClient();
  client.answers.set("https://beta.example/", { body: ROOT_1_3 });
  env = {};
});

async function storeInMemory() {
  const store = await openStore({ path: ":memory:" });
  onTestFinished(() => store.close());
  return store;
}

async function openRegistry(store: Awaited<ReturnType<typeof storeInMemory>>): Promise<SwarmRegistry> {
  const registry = new SwarmRegistry({
    store,
    clock,
    client,
    env,
    guard: createGuard({ allow: ["loopback"] }),
    local: () => "alpha",
    timeLimit: 1_000,
  });
  await registry.load();
  return registry;
}

const BETA = { name: "beta", baseUrl: "https://beta.example/", volatile: false } as const;

describe("the swarm registry", () => {
  it("[MAIL-REST-09, MAIL-REG-01] stores a registered swarm and its self-description across a restart", async () => {
    const store = await storeInMemory();
    await (await openRegistry(store)).register({ ...BETA, metadata: { floor: 2 } });
    const again = await openRegistry(store);
    expect(again.get("beta")).toMatchObject({
      baseUrl: "https://beta.example",
      version: "1.3",
      description: "weather",
      keywords: ["rain"],
      public: true,
      entrypoint: "chief",
      isActive: true,
      lastSeen: clock.now(),
      metadata: { floor: 2 },
    });
  });

  it("[MAIL-REG-01] drops a volatile swarm at restart, also one that was persistent before", async () => {
    const store = await storeInMemory();
    const registry = await openRegistry(store);
    await registry.register(BETA);
    await registry.register({ ...BETA, volatile: true });
    expect(registry.has("beta")).toBe(true);
    expect((await openRegistry(store)).has("beta")).toBe(false);
  });

  it("[MAIL-REG-02, MAIL-SEC-04] never stores a literal token: it is used until the restart, then the variable is needed", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-registry-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const store = await openStore({ directory, durability: "fast" });
    const registry = await openRegistry(store);
    await registry.register({ ...BETA, authToken: "very-secret-token" });
    expect(registry.tokenOf("beta")).toEqual({ kind: "ready", token: "very-secret-token" });
    const again = await openRegistry(store);
    expect(again.get("beta")?.authRef).toBe(["$", "{SWARM_AUTH_TOKEN_BETA}"].join(""));
    expect(again.tokenOf("beta")).toEqual({ kind: "unset", variable: "SWARM_AUTH_TOKEN_BETA" });
    expect(again.variables()).toEqual({ SWARM_AUTH_TOKEN_BETA: false });
    env.SWARM_AUTH_TOKEN_BETA = "from-the-environment";
    expect(again.tokenOf("beta")).toEqual({ kind: "ready", token: "from-the-environment" });
    await store.close();
    expect(readFileSync(join(directory, "mailroom.db")).includes("very-secret-token")).toBe(false);
  });

  it("[MAIL-REG-02] stores a token reference as given, whatever the variable's name", async () => {
    const store = await storeInMemory();
    const reference = ["$", "{MY_OWN_NAME}"].join("");
    await (await openRegistry(store)).register({ ...BETA, authToken: reference });
    env.MY_OWN_NAME = "resolved when it is used";
    const again = await openRegistry(store);
    expect(again.get("beta")?.authRef).toBe(reference);
    expect(again.tokenOf("beta")).toEqual({ kind: "ready", token: "resolved when it is used" });
  });

  it("registers an unreachable swarm as inactive, and describes it when it is first seen", async () => {
    const registry = await openRegistry(await storeInMemory());
    client.answers.clear();
    await registry.register(BETA);
    expect(registry.get("beta")).toMatchObject({ isActive: false, version: null, lastSeen: null });
    client.answers.set("https://beta.example/", { body: ROOT_1_3 });
    await registry.seen("beta", { at: clock.now(), latency: 0.02 });
    expect(registry.get("beta")).toMatchObject({ isActive: true, version: "1.3", latency: 0.02 });
  });

  it.each([
    ["http://beta.example", /use https/],
    ["http://10.1.2.3:8000", /allow-list/],
    ["https://169.254.169.254", /link-local|allow-list/],
    ["ftp://beta.example", /scheme/],
    ["https://user:secret@beta.example", /base URL/],
    ["beta", /base URL/],
  ])("[MAIL-SEC-01] rejects %s with a reason", async (baseUrl, why) => {
    const registry = await openRegistry(await storeInMemory());
    await expect(registry.register({ ...BETA, baseUrl })).rejects.toMatchObject({
      code: "bad_swarm_url",
      message: expect.stringMatching(why),
    });
    expect(registry.list()).toEqual([]);
  });

  it("rejects its own name, invalid names, and a server that announces another name", async () => {
    const registry = await openRegistry(await storeInMemory());
    for (const name of ["alpha", "a@b", "all", ""]) {
      await expect(registry.register({ ...BETA, name })).rejects.toMatchObject({ code: "bad_swarm_name" });
    }
    await expect(registry.register({ ...BETA, name: "gamma" })).rejects.toMatchObject({
      code: "name_differs",
    });
  });

  it("pins the first key it sees; only a new registration replaces it", async () => {
    const store = await storeInMemory();
    const registry = await openRegistry(store);
    const [first, second] = [readSigningKey(generateSigningKey()), readSigningKey(generateSigningKey())];
    client.answers.set("https://beta.example/", { body: { ...ROOT_1_3, public_key: first.publicKey } });
    await registry.register(BETA);
    client.answers.set("https://beta.example/", { body: { ...ROOT_1_3, public_key: second.publicKey } });
    await registry.lost("beta");
    await registry.seen("beta", { at: clock.now() });
    expect(registry.get("beta")?.publicKey).toBe(first.publicKey);
    await registry.register(BETA);
    expect(registry.get("beta")?.publicKey).toBe(second.publicKey);
  });

  it("unregisters a swarm, and rejects an unknown one", async () => {
    const store = await storeInMemory();
    const registry = await openRegistry(store);
    await registry.register(BETA);
    await registry.unregister("beta");
    expect((await openRegistry(store)).list()).toEqual([]);
    await expect(registry.unregister("beta")).rejects.toMatchObject({ code: "unknown_swarm" });
  });

  it("does not restore an unregistered swarm when a health check finishes late", async () => {
    const store = await storeInMemory();
    const registry = await openRegistry(store);
    await registry.register(BETA);
    await Promise.all([registry.unregister("beta"), registry.lost("beta")]);
    expect(registry.list()).toEqual([]);
    expect((await openRegistry(store)).list()).toEqual([]);
  });

  it("does not restore a replaced entry when a health check finishes late", async () => {
    const store = await storeInMemory();
    const registry = await openRegistry(store);
    await registry.register(BETA);
    client.answers.set("https://new.example/", { body: ROOT_1_3 });
    const commit = store.commit.bind(store);
    const committing = new Promise<void>((reached) => {
      store.commit = (batch) => {
        reached();
        return commit(batch);
      };
    });
    const moved = registry.register({ ...BETA, baseUrl: "https://new.example" });
    await committing;
    await Promise.all([moved, registry.lost("beta"), registry.seen("beta", { at: 1 })]);
    expect(registry.get("beta")?.baseUrl).toBe("https://new.example");
    expect((await openRegistry(store)).get("beta")?.baseUrl).toBe("https://new.example");
  });

  it("ignores observations of an address that the swarm has left", async () => {
    const registry = await openRegistry(await storeInMemory());
    await registry.register(BETA);
    await registry.lost("beta", "https://old.example");
    expect(registry.get("beta")?.isActive).toBe(true);
    await registry.lost("beta", "https://beta.example");
    await registry.seen("beta", { at: 1, baseUrl: "https://old.example" });
    expect(registry.get("beta")?.isActive).toBe(false);
  });

  it("writes the registry file before an unregistration is acknowledged", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-registry-"));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const registryFile = join(directory, "registry.json");
    const endpoints = { beta: { swarm_name: "beta", base_url: "https://beta.example" } };
    writeFileSync(registryFile, JSON.stringify({ endpoints }));
    const store = await storeInMemory();
    const options = { store, clock, ids: systemIds, swarm: "alpha", registryFile, report: () => {} };
    const federation = await Federation.open(options);
    onTestFinished(() => federation.close());
    await federation.registry.unregister("beta");
    expect(parseRegistryFile(readFileSync(registryFile, "utf8"), "alpha")).toEqual([]);
  });
});

describe("reading a self-description", () => {
  it("reads every known form of `GET /`", () => {
    expect(readSelfDescription(JSON.stringify(ROOT_1_3))).toMatchObject({ name: "beta", version: "1.3" });
    const old = { name: "mail", version: "1.2", swarm: "beta", status: "running", uptime: 1 };
    expect(readSelfDescription(JSON.stringify(old))).toMatchObject({ name: "beta", version: "1.2" });
    const oldest = { name: "mail", version: "1.0", status: "running" };
    expect(readSelfDescription(JSON.stringify(oldest))).toMatchObject({ name: null, version: "1.0" });
  });

  it.each(["", "<html>", "[]", "{}", "null"])("returns nothing for %j", (body) => {
    expect(readSelfDescription(body)).toBeUndefined();
  });
});

describe("discovery", () => {
  it("discovery only proposes: it overwrites nothing and imports no token, metadata or local name", async () => {
    const registry = await openRegistry(await storeInMemory());
    await registry.register(BETA);
    const list = {
      swarms: [
        { swarm_name: "beta", base_url: "https://evil.example", auth_token: "theirs" },
        { swarm_name: "alpha", base_url: "https://evil.example" },
        { name: "gamma", base_url: "https://gamma.example", auth_token: "theirs", volatile: false },
        { swarm_name: "delta", base_url: "http://127.0.0.1:1" },
        { swarm_name: "bad name", base_url: "https://x.example" },
        { swarm_name: "inside", base_url: "http://10.0.0.1" },
      ],
    };
    client.answers.set("https://hub.example/swarms", { body: list });
    const found = await discover(client, "https://hub.example/", { timeLimit: 1_000 });
    expect(await registry.propose(found)).toEqual(["gamma", "delta"]);
    expect(registry.list().map(({ name, baseUrl }) => [name, baseUrl])).toEqual([
      ["beta", "https://beta.example"],
    ]);
    expect(await registry.proposals()).toMatchObject([
      { name: "delta" },
      { name: "gamma", baseUrl: "https://gamma.example", source: "https://hub.example" },
    ]);
    await registry.propose([{ name: "gamma", baseUrl: "https://evil.example", source: "elsewhere" }]);
    expect((await registry.proposals())[1]?.baseUrl).toBe("https://gamma.example");
    client.answers.set("https://gamma.example/", { body: { ...ROOT_1_3, swarm: "gamma" } });
    await registry.register({ name: "gamma", baseUrl: "https://gamma.example", volatile: true });
    expect((await registry.proposals()).map(({ name }) => name)).toEqual(["delta"]);
    await registry.reject("delta");
    expect(await registry.proposals()).toEqual([]);
    await expect(registry.accept("delta", { volatile: true })).rejects.toMatchObject({
      code: "unknown_proposal",
    });
    await expect(registry.reject("delta")).rejects.toMatchObject({ code: "unknown_proposal" });
    // A rejected swarm may be proposed again, and the proposed URL is the one registered.
    await registry.propose(found);
    expect(await registry.accept("delta", { volatile: false })).toMatchObject({
      name: "delta",
      authRef: null,
      volatile: false,
    });
    expect(await registry.proposals()).toEqual([]);
  });

  it("discovery reports only proposals that were stored, and one server cannot fill the list", async () => {
    const registry = await openRegistry(await storeInMemory());
    const list = (prefix: string, length: number, source: string) =>
      Array.from({ length }, (_, at) => {
        const name = `${prefix}${at}`;
        return { name, baseUrl: `https://${name}.example`, source };
      });
    const proposed = [
      ...(await registry.propose(list("junk", 150, "https://evil.example/one"))),
      ...(await registry.propose(list("more", 150, "https://evil.example/two"))),
    ];
    expect(proposed).toHaveLength(100);
    expect((await registry.proposals()).map(({ name }) => name).sort()).toEqual(proposed.sort());
    expect(await registry.propose(list("honest", 1, "https://hub.example"))).toEqual(["honest0"]);
    // All proposals together are also limited.
    for (let at = 0; at < 10; at++) await registry.propose(list(`s${at}-`, 100, `https://s${at}.example`));
    expect(await registry.proposals()).toHaveLength(1_000);
    expect(await registry.propose(list("late", 1, "https://late.example"))).toEqual([]);
    // An existing proposal counts, with its URL.
    expect(await registry.propose(list("honest", 1, "https://hub.example"))).toEqual(["honest0"]);
    const other = { name: "honest0", baseUrl: "https://other.example", source: "https://hub.example" };
    expect(await registry.propose([other])).toEqual([]);
  });

  // A regular expression would exceed the test's time limit here.
  it("discovery skips URLs that are too long, however many slashes they have", async () => {
    const slashes = "/".repeat(100_000);
    const list = [
      { name: "long", base_url: `https://h.example/${slashes}x` },
      { name: "slashes", base_url: `https://h.example/a${"/".repeat(1_000)}` },
    ];
    expect(readSwarmList(JSON.stringify(list), "s")).toEqual([
      { name: "slashes", baseUrl: "https://h.example/a", source: "s" },
    ]);
    await expect(discover(client, `https://h.example${slashes}x`, { timeLimit: 1 })).rejects.toThrow();
    const registry = await openRegistry(await storeInMemory());
    await expect(
      registry.register({ ...BETA, baseUrl: `https://h.example/${slashes}x` }),
    ).rejects.toMatchObject({
      code: "bad_swarm_url",
    });
  });

  it("discovery returns nothing for an answer that is not a list", () => {
    for (const body of ["", "{}", '{"swarms": 3}', "[1]", '[{"name": 1}]']) {
      expect(readSwarmList(body, "x")).toEqual([]);
    }
  });
});

describe("the reference's registry file", () => {
  const FILE = {
    local_swarm_name: "alpha",
    endpoints: {
      alpha: { swarm_name: "alpha", base_url: "http://localhost:8000", volatile: false },
      beta: {
        swarm_name: "beta",
        base_url: "https://beta.example/",
        auth_token_ref: ["$", "{THEIR_VARIABLE}"].join(""),
        last_seen: "2026-03-02T08:00:05.000002+00:00",
        volatile: false,
      },
      gamma: { base_url: "http://localhost:9", auth_token: "literal", volatile: false },
      gone: { swarm_name: "gone", base_url: "https://gone.example", volatile: true },
    },
  };

  it("imports old and new forms: unknown swarms are added, tokens become references", async () => {
    const store = await storeInMemory();
    const registry = await openRegistry(store);
    await registry.register(BETA);
    await registry.load(parseRegistryFile(JSON.stringify(FILE), "alpha"));
    expect(registry.list().map(({ name }) => name)).toEqual(["beta", "gamma"]);
    // The table takes precedence over the file.
    expect(registry.get("beta")?.authRef).toBe(null);
    expect(registry.tokenOf("gamma")).toEqual({ kind: "ready", token: "literal" });
    expect((await openRegistry(store)).tokenOf("gamma")).toEqual({
      kind: "unset",
      variable: "SWARM_AUTH_TOKEN_GAMMA",
    });
  });

  it("describes each imported swarm when it is first seen, and again after a restart", async () => {
    const store = await storeInMemory();
    const key = readSigningKey(generateSigningKey()).publicKey;
    const root = { ...ROOT_1_3, capabilities: ["dedupe"], public_key: key };
    client.answers.set("https://beta.example/", { body: root });
    const registry = await openRegistry(store);
    const endpoints = { beta: { base_url: "https://beta.example", version: "1.3" } };
    await registry.load(parseRegistryFile(JSON.stringify({ endpoints }), "alpha"));
    expect(registry.get("beta")).toMatchObject({ isActive: true, capabilities: [] });
    await registry.seen("beta", { at: clock.now() });
    expect(registry.get("beta")).toMatchObject({ capabilities: ["dedupe"], publicKey: key });
    await registry.seen("beta", { at: clock.now() });
    expect(client.asked).toEqual(["https://beta.example/"]);
    client.answers.set("https://beta.example/", { body: { ...root, capabilities: ["dedupe", "events"] } });
    const again = await openRegistry(store);
    await again.seen("beta", { at: clock.now() });
    expect(again.get("beta")?.capabilities).toEqual(["dedupe", "events"]);
  });

  it("is written in the reference's form, without tokens, and its directory is created", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-file-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const path = join(directory, "registries", "alpha.json");
    const registry = await openRegistry(await storeInMemory());
    await registry.register({ ...BETA, authToken: "very-secret-token" });
    await registry.register({ name: "passing", baseUrl: "http://localhost:9", volatile: true });
    const local = {
      name: "alpha",
      baseUrl: null,
      description: "",
      keywords: [],
      public: true,
      version: "1.2",
    };
    const text = formatRegistryFile(local, registry.list());
    replaceFile(path, text);
    expect(text).not.toContain("very-secret-token");
    expect(Object.keys(JSON.parse(text).endpoints)).toEqual(["alpha", "beta"]);
    expect(await readRegistryFile(path, "alpha")).toMatchObject([
      { entry: { name: "beta", baseUrl: "https://beta.example", version: "1.3" }, token: undefined },
    ]);
    expect(await readRegistryFile(join(directory, "none.json"), "alpha")).toEqual([]);
    expect(() => parseRegistryFile("[]", "alpha", "r.json")).toThrow("r.json is not a swarm registry");
  });
});

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  badConfig,
  type ConfigProblem,
  configProblemsOf,
  configurationDocs,
  explainSettings,
  settingFlags,
  settingRows,
} from "../settings/index.js";
import { catalog, loadConfig } from "./catalog.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mailroom-config-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const write = (text: string, name = "mail.toml") => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};
const load = (options: { flags?: Record<string, unknown>; env?: Record<string, string | undefined> } = {}) =>
  loadConfig({ env: {}, directory, ...options });

function problemsOf(act: () => unknown): readonly ConfigProblem[] {
  try {
    act();
  } catch (error) {
    const problems = configProblemsOf(error);
    if (problems !== undefined) return problems;
    throw error;
  }
  return [];
}

/** Where a value came from and what it is, as `mailroom config` shows it. */
function explained(config: ReturnType<typeof load>, key: string): string | undefined {
  const row = explainSettings(config).find((candidate) => candidate.key === key);
  return row && `${row.value} (${row.source.replace(directory, ".")})`;
}

describe("the configuration", () => {
  it("has a default for everything", () => {
    const { settings, file, rows } = load();
    expect(file).toBeUndefined();
    expect(settings.server).toMatchObject({ host: "127.0.0.1", port: 8000, dev: false, data: undefined });
    expect(settings.server.strictIds).toBe(false);
    expect(settings.runtime).toMatchObject({ maxSteps: 15, repetition: 3, turns: 1_024, turnsPerTask: 8 });
    expect(settings.http).toMatchObject({ failedAuthentications: 20, streamsPerCaller: 100 });
    expect(settings.auth.mode).toEqual(["token"]);
    expect(settings.store).toEqual({ database: "sqlite", durability: "fsync" });
    expect(rows.every(({ source }) => source.from === "default")).toBe(true);
  });

  it("loads the reference's file without a warning, under both names of the registry", () => {
    const text = readFileSync(new URL("../../test/data/reference-mail.toml", import.meta.url), "utf8");
    for (const name of ["registry", "registry_file"]) {
      write(text.replace("registry =", `${name} =`));
      const { settings, warnings } = load();
      expect(warnings).toEqual([]);
      expect(settings.server).toMatchObject({
        port: 8100,
        host: "0.0.0.0",
        debug: true,
        printLlmStreams: false,
        swarm: {
          name: "example-no-proxy",
          source: join(directory, "swarms.json"),
        },
      });
      expect(settings.federation.registryFile).toBe(join(directory, "registries/example-no-proxy.json"));
      expect(settings.runtime.maxSteps).toBe(20);
      expect(settings.client).toMatchObject({ timeout: 3_600_000, verbose: true });
      expect(settings.log.level).toBe("debug");
    }
  });

  it("accepts the old name of a renamed setting with a warning, but not both names", () => {
    write("[limits]\nresting_tasks = 7\n");
    const { settings, warnings } = load();
    expect(settings.runtime.cachedTasks).toBe(7);
    expect(warnings).toMatchObject([
      { place: expect.stringMatching(/:2$/), message: "limits.resting_tasks is now limits.cached_tasks" },
    ]);
    const env = { MAILROOM_LIMITS_RESTING_TASKS: "8" };
    expect(load({ env })).toMatchObject({
      settings: { runtime: { cachedTasks: 8 } },
      warnings: [{ place: "MAILROOM_LIMITS_RESTING_TASKS" }],
    });
    write("[limits]\nresting_tasks = 7\ncached_tasks = 7\n");
    expect(problemsOf(() => load())).toMatchObject([{ key: "limits.cached_tasks" }]);
  });

  it("reads flags before the environment before the file before the default, and records the source", () => {
    write("[server]\nport = 1\n");
    const env = { MAILROOM_PORT: "2" };
    expect(explained(load({ flags: { port: "3" }, env }), "server.port")).toBe("3 (--port)");
    expect(explained(load({ env }), "server.port")).toBe("2 (MAILROOM_PORT)");
    expect(explained(load(), "server.port")).toBe("1 (./mail.toml:2)");
    rmSync(join(directory, "mail.toml"));
    expect(explained(load(), "server.port")).toBe("8000 (default)");
  });

  it("reads the reference's variables after Mailroom's own", () => {
    const env = {
      AUTH_ENDPOINT: "http://auth.example/login",
      TOKEN_INFO_ENDPOINT: "http://auth.example/check",
      MAILROOM_AUTH_TOKEN_INFO_ENDPOINT: "http://ours.example/check",
      LITELLM_PROXY_API_BASE: "http://llm.example",
      DATABASE_URL: "none",
      SWARM_NAME: "not read",
    };
    const { settings } = load({ env });
    expect(settings.auth).toMatchObject({
      authEndpoint: "http://auth.example/login",
      tokenInfoEndpoint: "http://ours.example/check",
      mode: ["token", "service"],
    });
    expect(settings.models.proxyUrl).toBe("http://llm.example");
    expect(settings.store.database).toBe("memory");
    expect(settings.server.swarm.name).toBeUndefined();
  });

  it("treats an empty variable as not set", () => {
    expect(load({ env: { MAILROOM_PORT: "", DATABASE_URL: "" } }).settings.server.port).toBe(8000);
  });

  it("resolves paths in the file against the file, others against the working directory", () => {
    mkdirSync(join(directory, "etc"));
    const file = write('[server]\ndata = "d"\n[server.swarm]\nsource = "s.json"\n', "etc/other.toml");
    const { settings } = load({ flags: { config: "etc/other.toml", data: "here" } });
    expect(settings.server.data).toBe(join(directory, "here"));
    expect(settings.server.swarm.source).toBe(join(directory, "etc/s.json"));
    expect(load({ flags: { config: file } }).file).toBe(file);
  });
});

describe("the file", () => {
  it("is named by --config, then by MAIL_CONFIG_PATH, then is ./mail.toml", () => {
    for (const name of ["a", "b", "mail"]) write(`[server.swarm]\nname = "${name}"`, `${name}.toml`);
    const env = { MAIL_CONFIG_PATH: "b.toml" };
    expect(load({ flags: { config: "a.toml" }, env }).settings.server.swarm.name).toBe("a");
    expect(load({ env }).settings.server.swarm.name).toBe("b");
    expect(load().settings.server.swarm.name).toBe("mail");
  });

  it("must exist if a flag or variable names it", () => {
    expect(problemsOf(() => load({ flags: { config: "no.toml" } }))).toMatchObject([
      { place: "--config", message: expect.stringContaining("no.toml") },
    ]);
    expect(problemsOf(() => load({ env: { MAIL_CONFIG_PATH: "no.toml" } }))).toMatchObject([
      { place: "MAIL_CONFIG_PATH" },
    ]);
  });

  it("must be TOML; the error names the position and does not quote the content", () => {
    const file = write('[auth.jwt]\nsecret = "sesame\n');
    const [problem] = problemsOf(() => load());
    expect(problem?.place).toMatch(`${file}:2:`);
    expect(JSON.stringify(problem)).not.toContain("sesame");
  });
});

describe("problems", () => {
  const messages = (text: string) => {
    const file = write(text);
    return problemsOf(() => load()).map(
      ({ place, message, hint }) => `${place?.replace(file, "mail.toml")}: ${message}; ${hint}`,
    );
  };

  it("in names are reported with their line and a suggestion", () => {
    expect(messages("[server]\n\nprot = 9000\n")).toEqual([
      "mail.toml:3: unknown key 'server.prot'; did you mean 'port'?",
    ]);
    expect(messages("[servr]\nport = 1\n")).toEqual([
      "mail.toml:1: unknown key 'servr'; did you mean 'server'?",
    ]);
    expect(messages("[server]\ntask_message_limit = 3\n")).toEqual([
      "mail.toml:2: unknown key 'server.task_message_limit'; did you mean 'server.settings.task_message_limit'?",
    ]);
    expect(messages("[log]\nzzzzzzzzzz = 3\n")).toEqual([
      "mail.toml:2: unknown key 'log.zzzzzzzzzz'; known: 'level', 'format'",
    ]);
    expect(messages("server = 3")).toEqual(["mail.toml:1: server must be a table; undefined"]);
  });

  it("in MAILROOM_ variables are reported, other variables are ignored", () => {
    const env = { MAILROOM_PROT: "9000", MAILROOM_SERVER_PORT: "9000", PORT: "1", MAILROOM_MESH_LISTEN: "x" };
    expect(problemsOf(() => load({ env }))).toMatchObject([
      { place: "MAILROOM_PROT", hint: "did you mean 'MAILROOM_PORT'?" },
      { place: "MAILROOM_SERVER_PORT", hint: "did you mean 'MAILROOM_PORT'?" },
    ]);
  });

  it("in values are reported together, with the expected kind", () => {
    write('[server]\nport = "many"\n[log]\nlevel = "loud"\n');
    const problems = problemsOf(() =>
      load({ flags: { dev: "perhaps" }, env: { MAILROOM_TURN_TIMEOUT: "soon" } }),
    );
    expect(problems.map(({ key, place }) => `${key} ${place?.replace(directory, ".")}`)).toEqual([
      "server.port ./mail.toml:2",
      "server.dev --dev",
      "log.level ./mail.toml:4",
      "server.settings.turn_timeout MAILROOM_TURN_TIMEOUT",
    ]);
    expect(problems[0]?.message).toBe('server.port must be a whole number from 0 to 65535, not "many"');
    const error = badConfig(problems);
    expect(error.code).toBe("bad_config");
    expect(error.message.split("\n")).toHaveLength(5);
  });

  it("with two names of one setting are reported", () => {
    write('[server.swarm]\nregistry = "a"\nregistry_file = "b"\n');
    expect(
      problemsOf(() => load({ flags: { swarm: "a", swarmSource: "b" } })).map(({ message }) => message),
    ).toEqual([
      "means the same as --swarm: use only one of them",
      "server.swarm.registry_file means the same as server.swarm.registry: use only one of them",
    ]);
  });

  it("between settings are reported at the setting to change", () => {
    const keysOf = (options: Parameters<typeof load>[0]) =>
      problemsOf(() => load(options)).map(({ key }) => key);
    expect(keysOf({ flags: { dev: true, host: "0.0.0.0" } })).toEqual(["server.host"]);
    expect(keysOf({ flags: { dev: true, host: "::1" } })).toEqual([]);
    expect(keysOf({ env: { MAILROOM_TLS_CERT: "c.pem" } })).toEqual(["server.tls.cert"]);
    expect(keysOf({ env: { MAILROOM_TLS_KEY: "k.pem" } })).toEqual(["server.tls.key"]);
    expect(keysOf({ env: { MAILROOM_TLS_KEY: "k.pem", MAILROOM_TLS_CERT: "c.pem" } })).toEqual([]);
    expect(keysOf({ env: { AUTH_ENDPOINT: "http://a.example" } })).toEqual(["auth.auth_endpoint"]);
    expect(keysOf({ env: { MAILROOM_AUTH_MODE: "service" } })).toEqual(["auth.mode"]);
    expect(keysOf({ env: { MAILROOM_AUTH_MODE: "jwt" } })).toEqual(["auth.mode"]);
    const both = { MAILROOM_AUTH_JWT_JWKS_URL: "https://a.example", MAILROOM_AUTH_JWT_SECRET: "x" };
    expect(keysOf({ env: both })).toEqual(["auth.jwt.jwks_url"]);
  });

  it("with a PostgreSQL URL are reported without its password", () => {
    const [problem] = problemsOf(() => load({ env: { DATABASE_URL: "postgres://ann:sesame@db.example/x" } }));
    expect(problem).toMatchObject({ key: "store.database", place: "DATABASE_URL" });
    expect(problem?.message).toMatch(/PostgreSQL/);
    expect(JSON.stringify(problem)).not.toContain("sesame");
  });
});

describe("secrets", () => {
  it("are never shown", () => {
    write('[auth.jwt]\nsecret = "open sesame"\n');
    const config = load({ env: { OPENAI_API_KEY: "sk-sesame", MAILROOM_TOKEN: "mr_sesame" } });
    expect(config.settings.auth.jwt.secret).toBe("open sesame");
    expect(config.settings.client.token).toBe("mr_sesame");
    expect(explained(config, "auth.jwt.secret")).toBe("******** (./mail.toml:2)");
    expect(explained(config, "a2a.agents")).toBe("none (default)");
    expect(JSON.stringify(config.rows) + JSON.stringify(explainSettings(config))).not.toContain("sesame");
    const wrong = problemsOf(() => load({ env: { MAILROOM_TOKEN: "sesame" }, flags: { token: 5 } }));
    expect(wrong).toHaveLength(1);
  });

  it("may be references to the environment", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the file contains this text
    write('[auth.jwt]\nsecret = "${ISSUER_SECRET}"\n');
    expect(load({ env: { ISSUER_SECRET: "open sesame" } }).settings.auth.jwt.secret).toBe("open sesame");
    expect(problemsOf(() => load())).toMatchObject([{ message: expect.stringContaining("ISSUER_SECRET") }]);
  });
});

describe("the catalog", () => {
  it("gives every setting unique keys, variables and flags", () => {
    const rows = settingRows(catalog);
    const names = [
      ...rows.map(({ key }) => key),
      ...rows.flatMap(({ env }) => env),
      ...rows.flatMap(({ flag }) => [...(flag?.names ?? [])]),
    ];
    expect(new Set(names).size).toBe(names.length);
  });

  it("has the reference's flags", () => {
    const flags = settingFlags(catalog, "server").flatMap(({ names, short = "" }) => [...names, short]);
    expect(flags).toEqual(
      expect.arrayContaining(
        "-p --port -H --host -r --reload -d --debug -n --swarm-name -s --swarm-source -rf --swarm-registry --print-llm-streams --dev --data --swarm".split(
          " ",
        ),
      ),
    );
    expect(settingFlags(catalog, "client").map(({ key }) => key)).toContain("client.timeout");
  });

  it("is documented in docs/configuration.md (if not: npx tsx scripts/config-docs.ts)", () => {
    const docs = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
    expect(docs).toBe(configurationDocs(catalog));
    for (const { key, env, flag } of settingRows(catalog)) {
      const [name] = key.split(".").slice(-1);
      for (const word of [name, ...env, ...(flag?.names ?? [])]) expect(docs).toContain(`\`${word}\``);
    }
  });

  it("describes every table", () => {
    const tables = new Set(settingRows(catalog).map(({ key }) => key.slice(0, key.lastIndexOf("."))));
    expect([...tables].filter((table) => !(table in catalog.tables))).toEqual([]);
  });
});

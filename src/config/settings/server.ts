import type { Section } from "../declare.js";
import {
  anyText,
  duration,
  httpUrl,
  listOf,
  origin,
  path,
  size,
  text,
  trustProxy,
  truth,
  whole,
} from "../kinds.js";

export function serverSettings(server: Section) {
  return {
    host: server.setting("host", {
      kind: text,
      default: "127.0.0.1",
      doc: "The address to listen on. Only this machine can reach the default; `0.0.0.0` is every address.",
      flag: { names: ["--host"], short: "-H", value: "<address>", commands: ["server"] },
    }),
    port: server.setting("port", {
      kind: whole({ max: 65_535 }),
      default: 8000,
      doc: "The port to listen on; 0 takes one that is free.",
      flag: { names: ["--port"], short: "-p", value: "<port>", commands: ["server"] },
    }),
    data: server.optional("data", {
      kind: path,
      otherwise: "`.mailroom/<swarm>`",
      doc: "The directory for everything that is stored.",
      flag: { names: ["--data"], value: "<directory>", commands: ["server"] },
    }),
    dev: server.setting("dev", {
      kind: truth,
      default: false,
      doc: "For development: a bearer token `role:id` is taken at its word. Listens on this machine only.",
      flag: { names: ["--dev"], commands: ["server"] },
    }),
    publicUrl: server.optional("public_url", {
      kind: httpUrl,
      doc: "The URL under which others reach this server. Never guessed.",
    }),
    trustProxy: server.setting("trust_proxy", {
      kind: trustProxy,
      default: false,
      doc: "Whose `X-Forwarded-*` headers are believed: a number of proxies, or their addresses.",
    }),
    bodyLimit: server.setting("body_limit", {
      kind: size(),
      default: 1024 * 1024,
      doc: "The largest body of a request.",
    }),
    corsOrigins: server.setting("cors_origins", {
      kind: listOf(origin),
      default: [],
      doc: "Web pages of these origins may call the server from a browser.",
    }),
    reload: server.setting("reload", {
      kind: truth,
      default: false,
      doc: "Take up changes of the swarm file while it runs.",
      flag: { names: ["--reload"], short: "-r", commands: ["server"] },
    }),
    debug: server.setting("debug", {
      kind: truth,
      default: false,
      doc: 'Log everything: the same as `log.level = "debug"`.',
      flag: { names: ["--debug"], short: "-d", commands: ["server"] },
    }),
    metrics: server.setting("metrics", {
      kind: truth,
      default: true,
      doc: "Serve `/metrics` for Prometheus.",
    }),
    tls: server.section("tls", "TLS in the process itself. Read again on SIGHUP.", (tls) => ({
      cert: tls.optional("cert", { kind: path, doc: "The file with the certificate chain, in PEM." }),
      key: tls.optional("key", { kind: path, doc: "The file with the private key, in PEM." }),
    })),
    swarm: server.section("swarm", "The swarm that is served.", swarmSettings),
    settings: server.section("settings", "How tasks are run.", taskSettings),
  };
}

function swarmSettings(swarm: Section) {
  return {
    name: swarm.optional("name", {
      kind: text,
      otherwise: "the only one in the file",
      doc: "Which swarm of the swarm file is served.",
      flag: { names: ["--swarm-name"], short: "-n", value: "<name>", commands: ["server"] },
    }),
    source: swarm.optional("source", {
      kind: path,
      otherwise: "`swarms.json` if there is one, else the demonstration swarm",
      doc: "The swarm file.",
      flag: { names: ["--swarm", "--swarm-source"], short: "-s", value: "<file>", commands: ["server"] },
    }),
    registry: swarm.optional("registry", {
      kind: path,
      aliases: ["registry_file"],
      doc: "A file with other swarms: read at the start, rewritten after each change.",
      flag: { names: ["--swarm-registry"], short: "-rf", value: "<file>", commands: ["server"] },
    }),
    description: swarm.setting("description", {
      kind: anyText,
      default: "",
      doc: "What the swarm is for, as other swarms see it; empty for what the swarm file says.",
    }),
    keywords: swarm.setting("keywords", {
      kind: listOf(text),
      default: [],
      doc: "Words by which other swarms find it.",
    }),
    public: swarm.setting("public", {
      kind: truth,
      default: false,
      doc: "Whether it is listed to everybody.",
    }),
    allowModules: swarm.setting("allow_modules", {
      kind: truth,
      default: false,
      doc: "Whether a swarm that is loaded over HTTP may refer to code and to environment variables of this machine.",
    }),
  };
}

function taskSettings(settings: Section) {
  return {
    taskMessageLimit: settings.setting("task_message_limit", {
      kind: whole(),
      default: 15,
      doc: "Steps of a task before it is made to finish; 0 for no limit.",
    }),
    repetitionLimit: settings.setting("repetition_limit", {
      kind: whole(),
      default: 3,
      doc: "The same message this often is a loop and fails the task; 0 for never.",
    }),
    printLlmStreams: settings.setting("print_llm_streams", {
      kind: truth,
      default: true,
      doc: "Show what models say on standard error while they say it, if that is a terminal.",
      flag: { names: ["--print-llm-streams"], value: "<true|false>", commands: ["server"] },
    }),
    strictIds: settings.setting("strict_ids", {
      kind: truth,
      default: false,
      doc: "Refuse task ids of callers that are not UUIDs.",
    }),
    waitTimeout: settings.setting("wait_timeout", {
      kind: duration({ min: 1 }),
      default: 3_600_000,
      doc: "How long `POST /message` waits for the task's end unless the caller says otherwise.",
    }),
    taskTimeout: settings.setting("task_timeout", {
      kind: duration(),
      default: 0,
      doc: "How long a task may take from opening or resuming to its end; 0 for no limit.",
    }),
    turnTimeout: settings.setting("turn_timeout", {
      kind: duration({ min: 1 }),
      default: 600_000,
      doc: "How long an agent may take for one answer.",
    }),
    actionTimeout: settings.setting("action_timeout", {
      kind: duration({ min: 1 }),
      default: 300_000,
      doc: "How long an action may take unless it says otherwise.",
    }),
    speculation: settings.setting("speculation", {
      kind: truth,
      default: true,
      doc: "Whether agents that allow it start on mail a moment before it is durable; effects always wait for the disk.",
    }),
    retentionTime: settings.setting("retention_time", {
      kind: duration(),
      default: 0,
      doc: "Finished tasks are removed after this time; 0 for never.",
    }),
    retentionCount: settings.setting("retention_count", {
      kind: whole(),
      default: 0,
      doc: "Only this many finished tasks are kept, the newest; 0 for all.",
    }),
  };
}

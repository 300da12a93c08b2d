/** Settings of the server as a whole: where it listens, which swarm it serves, what it logs. */
import {
  boolean,
  choice,
  defineSettings,
  duration,
  httpUrl,
  integer,
  isLoopbackHost,
  list,
  originKind,
  path,
  setting,
  text,
  textKind,
  trustProxyKind,
} from "../base/index.js";

const LOG_LEVELS = ["silent", "error", "warn", "info", "debug", "trace"] as const;

const debug = boolean("server.debug", {
  default: false,
  doc: 'Log everything and show stack traces. The same as `log.level = "debug"`.',
  flag: { names: ["--debug"], short: "-d", commands: ["server"] },
});

export const serverSettings = defineSettings(
  {
    host: text("server.host", {
      default: "127.0.0.1",
      doc: "Address to listen on. The default accepts connections from this machine only; `0.0.0.0` listens on every address.",
      flag: { names: ["--host"], short: "-H", value: "<address>", commands: ["server"] },
    }),
    port: integer("server.port", {
      max: 65_535,
      default: 8000,
      doc: "Port to listen on; 0 picks a free one.",
      flag: { names: ["--port"], short: "-p", value: "<port>", commands: ["server"] },
    }),
    data: path("server.data", {
      defaultText: "`.mailroom/<swarm>`",
      doc: "Data directory.",
      flag: { names: ["--data"], value: "<dir>", commands: ["server"] },
    }),
    dev: boolean("server.dev", {
      default: false,
      doc: "Development mode: accepts any `role:id` as a bearer token. Listens on loopback only.",
      flag: { names: ["--dev"], commands: ["server"] },
    }),
    publicUrl: httpUrl("server.public_url", {
      doc: "URL at which others reach this server. It is never guessed.",
    }),
    trustProxy: setting("server.trust_proxy", trustProxyKind, {
      default: false,
      doc: "Proxies whose `X-Forwarded-*` headers are trusted: how many, or their addresses.",
    }),
    extensions: list("server.extensions", textKind, {
      default: [],
      doc: "Extensions of your own: files or packages whose default export is an extension. See extensions.md.",
      flag: { names: ["--extension"], value: "<module>", repeatable: true, commands: ["server"] },
    }),
    corsOrigins: list("server.cors_origins", originKind, {
      default: [],
      doc: "Origins of web pages that may call the server from a browser.",
    }),
    reload: boolean("server.reload", {
      default: false,
      doc: "Reload the swarm file when it changes.",
      flag: { names: ["--reload"], short: "-r", commands: ["server"] },
    }),
    debug,
    metrics: boolean("server.metrics", { default: true, doc: "Serve `/metrics` for Prometheus." }),
    connections: integer("limits.connections", { min: 1, default: 10_000, doc: "Open connections." }),
    strictIds: boolean("server.settings.strict_ids", {
      default: false,
      doc: "Reject task ids that are not UUIDs.",
    }),
    waitTimeout: duration("server.settings.wait_timeout", {
      min: 1,
      default: "1h",
      doc: "How long `POST /message` waits for the task to end unless the caller sets a limit.",
    }),
    printLlmStreams: boolean("server.settings.print_llm_streams", {
      default: true,
      doc: "Show model output on standard error while it is written, if that is a terminal.",
      flag: { names: ["--print-llm-streams"], value: "<true|false>", commands: ["server"] },
    }),
    tls: {
      cert: path("server.tls.cert", { doc: "Certificate chain (PEM file)." }),
      key: path("server.tls.key", { doc: "Private key (PEM file)." }),
    },
    swarm: {
      name: text("server.swarm.name", {
        defaultText: "the only one in the file",
        doc: "Which swarm of the swarm file to serve.",
        flag: { names: ["--swarm-name"], short: "-n", value: "<name>", commands: ["server"] },
      }),
      source: path("server.swarm.source", {
        defaultText: "`swarms.json` if it exists, otherwise the demonstration swarm",
        doc: "Swarm file.",
        flag: { names: ["--swarm", "--swarm-source"], short: "-s", value: "<file>", commands: ["server"] },
      }),
      description: text("server.swarm.description", {
        default: "",
        doc: "Purpose of the swarm, shown to other swarms. If empty, the description in the swarm file is used.",
      }),
      keywords: list("server.swarm.keywords", textKind, {
        default: [],
        doc: "Keywords by which other swarms find this one.",
      }),
      public: boolean("server.swarm.public", {
        default: false,
        doc: "List the swarm publicly.",
      }),
      allowModules: boolean("server.swarm.allow_modules", {
        default: false,
        doc: "Allow swarms loaded over HTTP to refer to code and environment variables of this machine.",
      }),
    },
  },
  {
    check({ dev, host, tls }, report) {
      // Decision D6: development mode trusts every caller, so only this machine may call.
      if (dev && !isLoopbackHost(host)) {
        report(
          "server.host",
          `with server.dev the server listens on this machine only, not on ${host}`,
          "remove the host, or turn server.dev off",
        );
      }
      if ((tls.cert === undefined) !== (tls.key === undefined)) {
        const [given, missing] = tls.cert === undefined ? ["key", "cert"] : ["cert", "key"];
        report(
          `server.tls.${given}`,
          `server.tls.${given} requires server.tls.${missing}`,
          "set both or neither",
        );
      }
    },
  },
);

export const logSettings = defineSettings({
  level: choice("log.level", LOG_LEVELS, {
    derive: (read) => (read(debug) ? "debug" : "warn"),
    defaultText: "`warn`; `debug` with `server.debug`",
    doc: "Least severe level that is logged.",
  }),
  format: choice("log.format", ["json", "text"], {
    default: "json",
    doc: "One JSON object per line, or text for people.",
  }),
});

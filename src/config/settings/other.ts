import type { Section } from "../declare.js";
import { choice, database, duration, httpUrl, text, truth } from "../kinds.js";
import { modelPrices } from "./agents.js";

export const LOG_LEVELS = ["silent", "error", "warn", "info", "debug", "trace"] as const;

export function storeSettings(store: Section) {
  return {
    database: store.setting("database", {
      kind: database,
      default: "sqlite",
      env: ["DATABASE_URL"],
      doc: "`sqlite` keeps everything in the data directory, `none` in memory, so that it is lost at the end.",
    }),
    durability: store.setting("durability", {
      kind: choice(["fsync", "fast"]),
      default: "fsync",
      doc: "`fsync`: what was acknowledged survives the loss of power. `fast`: the end of the process only.",
    }),
  };
}

export function logSettings(log: Section, debug: boolean) {
  return {
    level: log.setting("level", {
      kind: choice(LOG_LEVELS),
      default: debug ? "debug" : "warn",
      otherwise: "`warn`; `debug` with `server.debug`",
      doc: "What is logged, and everything more serious.",
    }),
    format: log.setting("format", {
      kind: choice(["json", "text"]),
      default: "json",
      doc: "One JSON object a line, or text for people.",
    }),
  };
}

export function modelSettings(models: Section) {
  return {
    proxyUrl: models.optional("proxy_url", {
      kind: httpUrl,
      env: ["LITELLM_PROXY_API_BASE"],
      doc: "A LiteLLM proxy for model calls.",
    }),
    proxyKey: models.optional("proxy_key", {
      kind: text,
      secret: true,
      env: ["LITELLM_PROXY_API_KEY"],
      doc: "Its key, for tasks whose caller's own is not at hand.",
    }),
    openaiKey: models.optional("openai_key", {
      kind: text,
      secret: true,
      env: ["OPENAI_API_KEY"],
      doc: "The key for OpenAI.",
    }),
    anthropicKey: models.optional("anthropic_key", {
      kind: text,
      secret: true,
      env: ["ANTHROPIC_API_KEY"],
      doc: "The key for Anthropic.",
    }),
    prices: modelPrices(models),
  };
}

export function clientSettings(client: Section) {
  return {
    url: client.setting("url", {
      kind: httpUrl,
      default: "http://127.0.0.1:8000",
      env: ["MAILROOM_URL"],
      doc: "The server that commands talk to when they are given none.",
      flag: { names: ["--url"], value: "<url>", commands: ["client"] },
    }),
    token: client.optional("token", {
      kind: text,
      secret: true,
      env: ["MAILROOM_TOKEN"],
      doc: "The token to show it.",
      flag: { names: ["--token", "--api-key"], short: "-ak", value: "<token>", commands: ["client"] },
    }),
    timeout: client.setting("timeout", {
      kind: duration({ min: 1 }),
      default: 3_600_000,
      doc: "How long to wait for an answer.",
      flag: { names: ["--timeout"], short: "-t", value: "<seconds>", commands: ["client"] },
    }),
    verbose: client.setting("verbose", {
      kind: truth,
      default: false,
      doc: "Show more.",
      flag: { names: ["--verbose"], short: "-v", commands: ["client"] },
    }),
  };
}

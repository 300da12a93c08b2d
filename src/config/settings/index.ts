/** The one table of settings: parsing, environment, flags, `mailroom config` and the documentation come from it. */
import type { Section } from "../declare.js";
import { authSettings } from "./auth.js";
import { limitSettings } from "./limits.js";
import { meshSettings } from "./mesh.js";
import { clientSettings, logSettings, modelSettings, storeSettings } from "./other.js";
import { serverSettings } from "./server.js";

export type Settings = ReturnType<typeof declareSettings>;

export function declareSettings(root: Section) {
  const server = root.section("server", "The server.", serverSettings);
  return {
    server,
    auth: root.section("auth", "Who may call.", authSettings),
    limits: root.section("limits", "How much at once. What is beyond gets 429 or 503.", limitSettings),
    store: root.section("store", "Where everything is kept.", storeSettings),
    log: root.section("log", "Logs.", (log) => logSettings(log, server.debug)),
    models: root.section("models", "Model providers.", modelSettings),
    mesh: root.section("mesh", "The Agent Swarm Protocol: see mesh.md.", meshSettings),
    client: root.section("client", "The commands that talk to a server.", clientSettings),
  };
}

/** Tables of rooms that declare their settings themselves (`loadConfig`'s `extend`); accepted as they are until then. */
export const RESERVED_TABLES = ["federation", "map", "mcp", "a2a"] as const;

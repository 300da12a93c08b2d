/** The one table of settings: parsing, environment, flags, `mailroom config` and the documentation come from it. */
import type { Section } from "../declare.js";
import { a2aSettings, actionSettings, mcpSettings } from "./agents.js";
import { authSettings } from "./auth.js";
import { federationSettings } from "./federation.js";
import { limitSettings } from "./limits.js";
import { mapSettings } from "./map.js";
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
    actions: root.section(
      "actions",
      "What the ready-made actions may touch: see actions.md.",
      actionSettings,
    ),
    mcp: root.section("mcp", "The swarm as an MCP server: see mcp.md.", mcpSettings),
    a2a: root.section("a2a", "The Agent2Agent protocol: see a2a.md.", a2aSettings),
    map: root.section(
      "map",
      "Conversations, and agents in other processes: see conversations.md.",
      mapSettings,
    ),
    federation: root.section("federation", "Other MAIL swarms: see federation.md.", federationSettings),
    mesh: root.section("mesh", "The Agent Swarm Protocol: see mesh.md.", meshSettings),
    client: root.section("client", "The commands that talk to a server.", clientSettings),
  };
}

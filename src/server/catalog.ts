/** Every setting of the program. A new module's settings are one line here. */

import { actionSettings } from "../actions/settings.js";
import { modelSettings } from "../agents/settings.js";
import { authSettings } from "../auth/settings.js";
import { clientSettings } from "../client/settings.js";
import { conversationSettings } from "../conversations/settings.js";
import { a2aSettings } from "../doors/a2a/settings.js";
import { consoleSettings } from "../doors/console/settings.js";
import { mapSettings } from "../doors/map/settings.js";
import { mcpSettings } from "../doors/mcp/settings.js";
import { runtimeSettings } from "../engine/settings.js";
import { federationSettings } from "../federation/settings.js";
import { httpSettings } from "../http/settings.js";
import { retentionSettings } from "../library/settings.js";
import { meshSettings } from "../mesh/settings.js";
import {
  type CatalogValues,
  type LoadedSettings,
  type LoadOptions,
  loadSettings,
  type SettingsCatalog,
} from "../settings/index.js";
import { storeSettings } from "../store/settings.js";
import { logSettings, serverSettings } from "./settings.js";

/** The settings of Mailroom and of its standard extensions. */
export const catalog = {
  modules: {
    server: serverSettings,
    log: logSettings,
    auth: authSettings,
    runtime: runtimeSettings,
    retention: retentionSettings,
    http: httpSettings,
    store: storeSettings,
    models: modelSettings,
    actions: actionSettings,
    mcp: mcpSettings,
    a2a: a2aSettings,
    console: consoleSettings,
    map: mapSettings,
    conversations: conversationSettings,
    federation: federationSettings,
    mesh: meshSettings,
    client: clientSettings,
  },
  tables: {
    server: "The server.",
    "server.tls": "TLS in the server process. Read again on SIGHUP.",
    "server.swarm": "The swarm to serve.",
    "server.settings": "How tasks run.",
    auth: "Authentication.",
    "auth.jwt": "JSON Web Tokens of an identity provider. Set exactly one of the four keys.",
    limits: "Limits. Calls beyond them get 429 or 503.",
    budgets: "Limits on what model calls use. At a limit the task pauses: see models.md.",
    store: "Storage.",
    log: "Logs.",
    models: "Model providers: see models.md.",
    actions: "What the ready-made actions may access: see actions.md.",
    mcp: "The swarm as an MCP server: see mcp.md.",
    a2a: "The Agent2Agent protocol: see a2a.md.",
    console: "The page for people: see console.md.",
    map: "Conversations, and agents in other processes: see conversations.md.",
    "map.limits": "Limits on MAP connections.",
    federation: "Other MAIL swarms: see federation.md.",
    mesh: "The Agent Swarm Protocol: see mesh.md.",
    "mesh.limits": "Limits on peers.",
    "mesh.bridge": "Messages from peers as tasks of the swarm.",
    "mesh.wake": "Notifications about new messages.",
    "mesh.github": "GitHub events as mesh messages.",
    client: "The commands that talk to a server.",
  },
  isOpen: (read) => read(serverSettings.declarations.extensions).length > 0,
} satisfies SettingsCatalog;

/** By module, in the shape of the declarations. */
export type Settings = CatalogValues<typeof catalog>;

export type Config = LoadedSettings<Settings>;

/**
 * Reads flags, environment and `mail.toml`. `loadServerConfig` also loads the extensions that they name.
 * @throws MailroomError `bad_config` with every problem
 * @example
 * const { settings, warnings } = loadConfig({ directory: process.cwd(), env: process.env });
 */
export function loadConfig(options: LoadOptions): Config {
  return loadSettings(catalog, options);
}

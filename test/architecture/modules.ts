/** The dependency rules, as data. `modules.test.ts` checks them. Paths are relative to `src/`. */

export interface Rule {
  /** Modules that may be imported. `"*"` is every module, `"!name"` excludes one, `"name/file.ts"` allows one file. */
  readonly may: readonly string[];
  /** Modules of which only types may be imported, with `import type`. */
  readonly types?: readonly string[];
  /** Files that other modules may import; `index.ts` and `settings.ts` unless said otherwise. */
  readonly entries?: readonly string[];
}

const INNER = ["base", "mail", "journal", "engine"];
const DOOR = [...INNER, "auth", "library", "extension"];

/** `extension.ts` is what the server loads first; it loads the rest when it is needed. */
const DOOR_ENTRIES = ["index.ts", "extension.ts", "settings.ts"];

/** A module may be nested (`doors/map`). A module that is listed need not exist yet. */
export const MODULES: Readonly<Record<string, Rule>> = {
  base: { may: [], entries: ["index.ts", "node.ts"] },
  mail: { may: ["base"], entries: ["index.ts", "pure.ts", "public.ts"] },
  journal: { may: ["base"] },
  net: { may: ["base"] },
  settings: { may: ["base"] },
  engine: { may: ["base", "mail", "journal"], entries: ["index.ts", "pure.ts", "settings.ts"] },
  outbox: { may: ["base", "journal"], types: ["engine"] },
  bus: { may: ["base", "journal"] },
  auth: { may: ["base", "mail", "journal", "net"], types: ["engine"] },
  agents: { may: ["base", "mail", "engine", "net"] },
  actions: { may: ["base", "mail", "engine", "net"] },
  swarm: { may: ["base", "mail", "engine", "agents", "actions", "net"] },
  demo: { may: ["base", "mail", "engine", "agents", "actions", "swarm"] },
  conversations: { may: [...INNER, "auth"] },
  federation: { may: [...INNER, "outbox", "net"] },
  mesh: { may: [...INNER, "outbox", "net"] },
  // The store implements the ports that the other modules declare, and uses their lists of statuses.
  store: { may: [...INNER, "outbox", "auth", "conversations", "federation", "mesh"] },
  telemetry: { may: INNER, entries: ["index.ts", "tracing.ts"] },
  library: { may: [...INNER, "store", "bus", "swarm", "agents", "actions", "demo", "telemetry"] },
  extension: { may: [...INNER, "auth", "library", "telemetry"], types: ["store"] },
  http: { may: [...DOOR, "telemetry"], types: ["store"] },
  "doors/mail": { may: [...DOOR, "telemetry"], types: ["store"], entries: DOOR_ENTRIES },
  "doors/federation": { may: [...DOOR, "federation"], entries: DOOR_ENTRIES },
  "doors/map": { may: [...DOOR, "agents", "conversations"], entries: DOOR_ENTRIES },
  "doors/mesh": { may: [...DOOR, "net", "mesh"], entries: DOOR_ENTRIES },
  "doors/mcp": { may: DOOR, entries: DOOR_ENTRIES },
  "doors/a2a": { may: [...DOOR, "net", "outbox"], types: ["store"], entries: DOOR_ENTRIES },
  "doors/console": { may: ["base", "auth", "extension"], entries: DOOR_ENTRIES },
  client: { may: ["base"], types: ["mail", "engine"] },
  // `control.ts` and `catalog.ts` are light: what commands need of a server that they do not run.
  server: {
    may: ["*", "!cli", "!console", "!testing"],
    entries: ["index.ts", "control.ts", "catalog.ts", "settings.ts"],
  },
  testing: { may: [...INNER, "agents", "actions", "swarm", "store", "bus", "outbox", "library"] },
  cli: {
    may: [
      "base",
      "mail",
      "auth",
      "settings",
      "client",
      "library",
      "swarm",
      "mesh",
      "server",
      // Commands that work without a running server, on the store itself.
      "store",
      "engine",
      "journal",
      "federation",
      "demo",
      // The stdio transports, the mesh and links to the console over the control socket.
      "doors/console",
      "doors/map",
      "doors/mcp",
      "doors/mesh",
    ],
    entries: ["main.ts"],
  },
  console: {
    may: ["base/index.ts", "engine/pure.ts", "mail/pure.ts"],
    types: ["client"],
    entries: ["main.tsx"],
  },
  // The public names.
  "index.ts": { may: ["*", "!cli", "!console"] },
};

/** Packages that only these places may import. */
export const OWNERS: Readonly<Record<string, readonly string[]>> = {
  "better-sqlite3": ["store/sqlite"],
  "node:sqlite": ["store/sqlite"],
  kysely: ["store"],
  pg: ["store/postgres", "bus/postgres"],
  "@nats-io/*": ["bus/nats"],
  fastify: ["http"],
  "@fastify/*": ["http"],
  ws: ["doors/map", "client", "cli"],
  undici: ["net", "server/control"],
  commander: ["cli"],
  "@clack/*": ["cli"],
  "prom-client": ["telemetry"],
  "@opentelemetry/*": ["telemetry"],
  "@a2a-js/sdk": ["doors/a2a"],
  ai: ["agents"],
  "@ai-sdk/*": ["agents"],
  "@modelcontextprotocol/*": ["doors/mcp", "actions"],
  pino: ["server"],
  "smol-toml": ["settings"],
  jose: ["auth"],
  "@peculiar/x509": ["mesh/dev-ca"],
  preact: ["console"],
  "@preact/*": ["console"],
  uplot: ["console"],
};

/** No clock, randomness, Node built-in or fetch. */
export const PURE: readonly RegExp[] = [
  /^mail\//,
  /^engine\/(?!runtime\/)/,
  /^conversations\/rules\//,
  /^mesh\/membership\//,
  /^base\/(errors|json|retry|settings)\.ts$/,
];

/** What runs in browsers: no `node:` import anywhere in its import graph. */
export const BROWSER: readonly string[] = [
  "client/index.ts",
  "console/main.tsx",
  "engine/pure.ts",
  "mail/pure.ts",
  "base/index.ts",
];

/** Every wait here belongs to the ports, so that a simulation owns it. */
export const OWNED_WAITS = /^(journal(?!\/system\.ts)|engine\/runtime)\//;

/**
 * What only the journal and the store that implements its ports do, apart from the few places that put the journal's
 * parts to use. This keeps out a second cache, commit queue, retry or follower of journals.
 */
export const ONLY_IN_THE_JOURNAL: readonly {
  readonly what: string;
  readonly pattern: RegExp;
  readonly except?: RegExp;
}[] = [
  // Owners may commit rows alone; entries of journals come from the decisions of a kernel.
  { what: "appends to a journal", pattern: /\bappends\b(?!: \[\])/ },
  { what: "hands something to the writer", pattern: /\bwriter\??\.(?:push|commit)\b/ },
  { what: "makes a writer", pattern: /\bnew Writer\b|\bextends Writer\b/ },
  // To retry after a conflicting commit, one has to know that there was one.
  { what: "knows of stale appends", pattern: /\bStaleAppendError\b/, except: /^engine\/ports\.ts$/ },
  {
    what: "has a kernel",
    pattern: /\bnew Kernel\b|\bextends Kernel\b/,
    except: /^(engine\/runtime\/runtime|conversations\/service\/kernel)\.ts$/,
  },
  // The state of a journal comes from folding it: without a fold nothing keeps state.
  {
    what: "folds entries into a state",
    pattern: /\b(?:evolve|fold|beginState)\(|import \{[^}]*\b(?:evolve|fold|beginState)\b[^}]*\}/,
    except:
      /^(engine\/(?!runtime\/)|conversations\/rules\/|conversations\/tasks\/projection\.ts$|console\/model\/travel\.ts$)/,
  },
  { what: "reads whole journals", pattern: /\.(?:readMany|readSnapshot)\b/ },
  { what: "hears of stored rows", pattern: /\.onRows\b/ },
  {
    what: "reads all journals in their order",
    pattern: /\.readAll\b/,
    except: /^(conversations\/events\/event-log|doors\/mail\/(?:feed\/reader|search))\.ts$/,
  },
  {
    what: "follows a journal by its channel",
    pattern: /\btaskChannel\b/,
    except: /^engine\/runtime\//,
  },
];

/** The systems, each with its durable store. */
export interface System {
  readonly name: string;
  readonly store: string;
  readonly durability: string;
  /** A module with `open(surroundings): Promise<Contender>`; those of other systems are not compiled. */
  readonly module: URL;
  readonly fsync: boolean;
}

/** This file is compiled to `.bench/bench/agents`; the peers' sources are not. */
const peer = (file: string) => new URL(`../../../bench/agents/${file}`, import.meta.url);
const own = new URL("./mailroom.js", import.meta.url);

export const MAILROOM_FSYNC = "Mailroom";
export const LANGGRAPH_FSYNC = "LangGraph.js, synchronous=FULL";
export const MAILROOM_FAST = "Mailroom, fast";
export const LANGGRAPH = "LangGraph.js";
export const OPENAI_AGENTS = "OpenAI Agents SDK";

export const SYSTEMS: readonly System[] = [
  { name: MAILROOM_FSYNC, store: "sqlite", durability: "fsync", module: own, fsync: true },
  { name: MAILROOM_FAST, store: "sqlite", durability: "fast", module: own, fsync: false },
  { name: LANGGRAPH_FSYNC, store: "sqlite", durability: "fsync", module: peer("langgraph.mjs"), fsync: true },
  // With its defaults: better-sqlite3 syncs a write-ahead log only at checkpoints.
  { name: LANGGRAPH, store: "sqlite", durability: "fast", module: peer("langgraph.mjs"), fsync: false },
  {
    name: OPENAI_AGENTS,
    store: "memory",
    durability: "none",
    module: peer("openai-agents.mjs"),
    fsync: false,
  },
];

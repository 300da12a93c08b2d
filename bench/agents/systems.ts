/** The systems, each as it is durable. */
export interface System {
  readonly name: string;
  readonly store: string;
  readonly durability: string;
  /** A module with `open(surroundings): Promise<Contender>`; those of the peers are not compiled. */
  readonly module: URL;
  readonly fsync: boolean;
}

/** This file is compiled to `.bench/bench/agents`; what it is compiled from stays where it is. */
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
  // As it comes: better-sqlite3 syncs a write-ahead log only at its checkpoints.
  { name: LANGGRAPH, store: "sqlite", durability: "fast", module: peer("langgraph.mjs"), fsync: false },
  {
    name: OPENAI_AGENTS,
    store: "memory",
    durability: "none",
    module: peer("openai-agents.mjs"),
    fsync: false,
  },
];

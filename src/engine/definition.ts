/**
 * A swarm as the engine sees it: names, rights and limits as plain data (`SwarmRules`), and the functions that
 * the runtime calls (`SwarmDefinition`). The rules alone decide; the functions only compute.
 */
import type { Action, AgentFunction } from "./agent.js";

export interface AgentDefinition {
  readonly name: string;
  readonly description?: string;
  readonly commTargets: readonly string[];
  readonly enableEntrypoint: boolean;
  readonly enableInterswarm: boolean;
  readonly canCompleteTasks: boolean;
  readonly toolFormat: "completions" | "responses";
  /** Names of actions of the swarm that the agent may call. */
  readonly actions: readonly string[];
  readonly excludeTools: readonly string[];
  /** `remote` agents are a durable mailbox served from outside (decisions B18). */
  readonly mind: LocalMind | { readonly kind: "remote" };
}

export interface LocalMind {
  readonly kind: "local";
  readonly run: AgentFunction;
  /**
   * `false`: its turns start on durable mail only. Otherwise one may run for mail that a crash then takes back, so what
   * must happen once belongs in an action.
   */
  readonly speculate?: boolean;
}

export interface SwarmDefinition {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly keywords: readonly string[];
  readonly public: boolean;
  /** The default entrypoint. */
  readonly entrypoint: string;
  readonly enableInterswarm: boolean;
  readonly agents: readonly AgentDefinition[];
  readonly actions: readonly Action[];
  readonly breakpointTools: readonly string[];
  readonly excludeTools: readonly string[];
  /** Hash of everything that is data in the definition; a change is journaled (decisions B17). */
  readonly hash: string;
  /**
   * Lets go of what its actions hold: connections, processes. Called when the mailroom is closed, or when another
   * definition has taken this one's place.
   */
  close?(): Promise<void>;
}

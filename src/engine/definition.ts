/**
 * A swarm as the engine sees it: names, rights and limits as plain data (`SwarmRules`), and the functions that
 * the runtime calls (`SwarmDefinition`). The rules alone decide; the functions only compute.
 */
import type { Action, AgentFunction } from "./agent.js";
import type { BudgetLimits } from "./usage.js";

/** An agent of a swarm, checked and complete. `defineAgent` and swarm files make it. */
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
  /** Limits on what its model calls use in one task. */
  readonly budget?: BudgetLimits;
  /** `remote` agents are a durable mailbox served by another process (decision B18). */
  readonly implementation: LocalImplementation | { readonly kind: "remote" };
}

export interface LocalImplementation {
  readonly kind: "local";
  readonly run: AgentFunction;
  /**
   * `false`: turns start on durable mail only. Otherwise a turn can run for mail that is lost in a crash, so effects that
   * must happen once belong in an action.
   */
  readonly speculate?: boolean;
}

/** A swarm, checked and complete. `defineSwarm` and `loadSwarm` make it. */
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
  /** Limits on what the model calls of one task use. */
  readonly budget?: BudgetLimits;
  /** Hash of everything that is data in the definition; a change is journaled (decision B17). */
  readonly hash: string;
  /**
   * Releases the resources of its actions: connections, processes. Called when the mailroom is closed, or when another
   * definition has replaced this one.
   */
  close?(): Promise<void>;
}

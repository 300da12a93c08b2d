/** What a factory is told about the agent that it is to make, and what it returns. */
import type { OfferedTool } from "../engine/agent.js";
import type { Finding } from "../mail/swarm-file/problems.js";
import type { MailFunction } from "./function.js";

/** An agent's place in its swarm, and its parameters. What belongs to the caller comes with each turn (`params`). */
export interface AgentWiring {
  readonly swarm: string;
  readonly name: string;
  readonly commTargets: readonly string[];
  readonly enableEntrypoint: boolean;
  readonly enableInterswarm: boolean;
  readonly canCompleteTasks: boolean;
  readonly toolFormat: "completions" | "responses";
  /** Those of the swarm and of the agent. */
  readonly excludeTools: readonly string[];
  /** The agent's actions. Its MAIL tools follow from its rights and are offered with each turn. */
  readonly tools: readonly OfferedTool[];
  /** `agent_params` of the swarm file, references resolved. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Somebody else than the operator wrote this: no secret of the environment may go where it says. */
  readonly untrusted?: boolean;
  /** Tells whoever loads the swarm about something that is odd but not wrong. Places are relative to `params`. */
  warn(finding: Finding): void;
}

/**
 * Makes the function behind an address. It is called once, when the swarm is loaded.
 * A factory that throws `AgentParamsError` has its findings shown with their places in the swarm file.
 */
export type AgentFactory = (wiring: AgentWiring) => MailFunction | Promise<MailFunction>;

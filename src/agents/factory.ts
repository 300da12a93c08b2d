/** The input and output of agent factories. */
import type { OfferedTool } from "../engine/index.js";
import type { UnplacedProblem } from "../mail/index.js";
import type { MailFunction } from "./function.js";

/** An agent's position in its swarm, and its parameters. Values of the caller come with each turn (`params`). */
export interface AgentContext {
  readonly swarm: string;
  readonly name: string;
  readonly commTargets: readonly string[];
  readonly enableEntrypoint: boolean;
  readonly enableInterswarm: boolean;
  readonly canCompleteTasks: boolean;
  readonly toolFormat: "completions" | "responses";
  /** Exclusions of the swarm and of the agent. */
  readonly excludeTools: readonly string[];
  /** The agent's actions. Its MAIL tools depend on its permissions and come with each turn. */
  readonly tools: readonly OfferedTool[];
  /** `agent_params` of the swarm file, references resolved. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The definition does not come from the operator: secrets of the environment must not be sent to its URLs. */
  readonly untrusted?: boolean;
  /** Reports a warning to the loader of the swarm. Paths are relative to `params`. */
  warn(finding: UnplacedProblem): void;
}

/**
 * Creates the function behind an address. Called once, when the swarm is loaded. Findings of a thrown
 * `badAgentParams(…)` are reported with their positions in the swarm file.
 */
export type AgentFactory = (context: AgentContext) => MailFunction | Promise<MailFunction>;

/** What can be wrong with an agent: its own code in a turn, and its parameters when it is made. */
import { type Finding, formatPath, formatProblems } from "../mail/swarm-file/problems.js";

export type AgentErrorCode =
  /** It replied to somebody whom it cannot answer. */
  | "cannot_reply"
  /** It did nothing with its message. */
  | "empty_answer"
  /** It recorded calls and returned an answer as well, so the order of the two is unknown. */
  | "mixed_answer"
  /** It returned something that is no answer. */
  | "bad_answer"
  /** A scripted agent got mail that none of its rules is about. */
  | "no_rule"
  /** A template of a scripted agent asks for something that is not there. */
  | "no_value"
  /** A scripted agent was told to fail. */
  | "scripted_failure"
  /** The provider of a model refused our key. */
  | "no_credentials"
  /** A model could not be asked, or answered with nothing that can be used. */
  | "model_failed"
  /** A model or its provider refused to answer. */
  | "model_refused";

/** Thrown in a turn. The runtime turns it into mail about the failure. */
export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly code: AgentErrorCode;
  constructor(code: AgentErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Thrown when an agent is made from parameters that do not fit. Places are relative to the parameters. */
export class AgentParamsError extends Error {
  override readonly name = "AgentParamsError";
  readonly code = "bad_agent_params";
  readonly findings: readonly Finding[];
  constructor(what: string, findings: readonly Finding[]) {
    const problems = findings.map(({ at, ...rest }) => ({ path: formatPath(at), ...rest }));
    super(formatProblems(`${what} cannot be made from these parameters:`, problems));
    this.findings = findings;
  }
}

import { hasCode, MailroomError } from "../base/index.js";
import { formatPath, formatProblems, type UnplacedProblem } from "../mail/index.js";

/** Creates the error for parameters that make no agent. Paths of the findings are relative to the parameters. */
export function badAgentParams(what: string, findings: readonly UnplacedProblem[]): MailroomError {
  const problems = findings.map(({ at, ...rest }) => ({ path: formatPath(at), ...rest }));
  const message = formatProblems(`${what} cannot be created from these parameters:`, problems);
  return new MailroomError("bad_agent_params", message, { details: { findings } });
}

/** Returns the findings of an error that `badAgentParams` created. */
export function findingsOf(error: unknown): readonly UnplacedProblem[] | undefined {
  if (!hasCode(error, "bad_agent_params")) return undefined;
  const { findings } = error.details;
  return Array.isArray(findings) ? findings : [];
}

/** Problems of a swarm's definition, with their positions. */
import { hasCode, MailroomError } from "../../base/index.js";

export type PathSegment = string | number;

/** A problem without its position in the text. */
export interface UnplacedProblem {
  readonly at: readonly PathSegment[];
  readonly message: string;
  /** How to correct it. */
  readonly hint?: string;
}

/** A problem with its position. */
export interface SwarmFileProblem {
  /** `swarms[0].agents[1].comm_targets[0]`; the empty string is the whole file. */
  readonly path: string;
  /** Position in the file, counted from 1, if there is a file. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
  readonly hint?: string;
}

export interface Findings {
  readonly errors: readonly UnplacedProblem[];
  readonly warnings: readonly UnplacedProblem[];
}

export function formatPath(path: readonly PathSegment[]): string {
  let text = "";
  for (const segment of path) {
    if (typeof segment === "number") text += `[${segment}]`;
    else if (!/^[A-Za-z_$][\w$]*$/.test(segment)) text += `[${JSON.stringify(segment)}]`;
    else text += text === "" ? segment : `.${segment}`;
  }
  return text;
}

/** Formats a problem in one or two lines. */
export function formatProblem(problem: SwarmFileProblem): string {
  const place = problem.line === undefined ? "" : `${problem.line}:${problem.column ?? 1} `;
  const path = problem.path === "" ? "" : `${problem.path}: `;
  const hint = problem.hint === undefined ? "" : `\n    ${problem.hint}`;
  return `${place}${path}${problem.message}${hint}`;
}

export function formatProblems(headline: string, problems: readonly SwarmFileProblem[]): string {
  return [headline, ...problems.map((problem) => `  ${formatProblem(problem)}`)].join("\n");
}

/** Creates the error of an invalid swarm file, with all its problems. */
export function badSwarmFile(
  source: string,
  problems: readonly SwarmFileProblem[],
  options: { readonly cause?: unknown } = {},
): MailroomError {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  const message = formatProblems(`${source} is not a valid swarm file (${count}):`, problems);
  return new MailroomError("bad_swarm_file", message, { ...options, details: { problems } });
}

/** Returns the problems of an invalid swarm file or definition. */
export function swarmProblemsOf(error: unknown): readonly SwarmFileProblem[] | undefined {
  if (!hasCode(error, "bad_swarm_file", "bad_swarm")) return undefined;
  const { problems } = error.details;
  return Array.isArray(problems) ? problems : [];
}

/** What is wrong with a definition of a swarm, and where. */

export type PathSegment = string | number;

/** A finding before it is given a place in a text. */
export interface Finding {
  readonly at: readonly PathSegment[];
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** A finding as people see it. */
export interface Problem {
  /** `swarms[0].agents[1].comm_targets[0]`; the empty string is the whole. */
  readonly path: string;
  /** Place in the file, counted from 1, where there is a file. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
  readonly hint?: string;
}

export interface Findings {
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
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

/** One problem in one or two lines. */
export function formatProblem(problem: Problem): string {
  const place = problem.line === undefined ? "" : `${problem.line}:${problem.column ?? 1} `;
  const path = problem.path === "" ? "" : `${problem.path}: `;
  const hint = problem.hint === undefined ? "" : `\n    ${problem.hint}`;
  return `${place}${path}${problem.message}${hint}`;
}

export function formatProblems(headline: string, problems: readonly Problem[]): string {
  return [headline, ...problems.map((problem) => `  ${formatProblem(problem)}`)].join("\n");
}

/** A swarm file that cannot be used. All its problems are listed, not only the first. */
export class SwarmFileError extends Error {
  override readonly name = "SwarmFileError";
  readonly code = "bad_swarm_file";
  readonly source: string;
  readonly problems: readonly Problem[];
  constructor(source: string, problems: readonly Problem[], options?: ErrorOptions) {
    const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
    super(formatProblems(`${source} is not a valid swarm file (${count}):`, problems), options);
    this.source = source;
    this.problems = problems;
  }
}

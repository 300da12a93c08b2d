/** One thing that is wrong with the configuration. */
export interface ConfigProblem {
  /** The setting or table that it is about, where there is one. */
  readonly key?: string;
  /** Where the value stands: `mail.toml:12`, `MAILROOM_PORT`, `--port`. */
  readonly place?: string;
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** The configuration cannot be used. Lists everything that is wrong, so that it can be mended in one go. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "bad_config";
  readonly problems: readonly ConfigProblem[];
  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(formatProblem);
    const [only] = lines;
    super(
      lines.length === 1 ? `${only}` : ["the configuration has several problems:", ...lines].join("\n  "),
    );
    this.problems = problems;
  }
}

export function formatProblem({ place, message, hint }: ConfigProblem): string {
  return `${place === undefined ? "" : `${place}: `}${message}${hint === undefined ? "" : `; ${hint}`}`;
}

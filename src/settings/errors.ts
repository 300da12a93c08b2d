import { hasCode, MailroomError } from "../base/index.js";

/** One problem with the configuration. */
export interface ConfigProblem {
  /** The setting or table that is wrong, if it is known. */
  readonly key?: string;
  /** Where the value was written: `mail.toml:12`, `MAILROOM_PORT`, `--port`. */
  readonly place?: string;
  readonly message: string;
  /** How to fix it. */
  readonly hint?: string;
}

/** The configuration is invalid. Lists every problem, so that all can be fixed at once. */
export function badConfig(problems: readonly ConfigProblem[]): MailroomError {
  const lines = problems.map(formatProblem);
  const [only] = lines;
  const message =
    lines.length === 1 ? `${only}` : ["the configuration has several problems:", ...lines].join("\n  ");
  return new MailroomError("bad_config", message, { details: { problems } });
}

/** The problems of an error that `badConfig` made. */
export function configProblemsOf(error: unknown): readonly ConfigProblem[] | undefined {
  if (!hasCode(error, "bad_config")) return undefined;
  const { problems } = error.details;
  return Array.isArray(problems) ? problems : [];
}

export function formatProblem({ place, message, hint }: ConfigProblem): string {
  return `${place === undefined ? "" : `${place}: `}${message}${hint === undefined ? "" : `; ${hint}`}`;
}

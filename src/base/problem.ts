/** A failure that no caller waits for. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  /** The key of the task that it happened in. */
  readonly task?: string;
  /** The name of the extension that it happened in. */
  readonly extension?: string;
  readonly cause?: unknown;
}

export type Report = (problem: Problem) => void;

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message === "" ? error.name : error.message;
}

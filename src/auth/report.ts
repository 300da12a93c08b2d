/** What an operator should know about a provider that could not do its work. Never holds a credential. */
export interface AuthTrouble {
  readonly provider: "token" | "service" | "jwt";
  readonly problem: string;
}

export type ReportTrouble = (trouble: AuthTrouble) => void;

/** The message of an error, with the cause that `fetch` hides. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== ""
    ? `${error.message}: ${cause.message}`
    : error.message;
}

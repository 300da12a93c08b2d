import { MailroomError } from "../base/index.js";

/** One problem of a value. */
export interface FormatProblem {
  /** JSON Pointer to the part; the empty string is the whole value. */
  readonly path: string;
  readonly message: string;
}

/** Result of a `check…` function: the typed value, or all its problems. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly errors: readonly FormatProblem[] };

/** Creates the error for data that is not valid MAIL. `details.errors` lists the problems. */
export function badMessage(what: string, errors: readonly FormatProblem[]): MailroomError {
  const reasons = errors.map(({ path, message }) => (path === "" ? message : `${path} ${message}`));
  return new MailroomError("bad_message", `not a valid ${what}: ${reasons.join("; ")}`, {
    details: { errors },
  });
}

/** Returns the value of a successful check, and throws for a failed one. */
export function valueOrThrow<T>(what: string, checked: Checked<T>): T {
  if (!checked.ok) throw badMessage(what, checked.errors);
  return checked.value;
}

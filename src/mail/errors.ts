/** One thing that is wrong with a piece of data. */
export interface FormatProblem {
  /** JSON Pointer into the data; the empty string is the whole. */
  readonly path: string;
  readonly message: string;
}

/** What a `check…` function answers: the value, now of a known type, or everything that is wrong with it. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly errors: readonly FormatProblem[] };

/** Data that claims to be MAIL and is not. Nothing was changed; the sender has to mend what `errors` lists. */
export class MailFormatError extends Error {
  override readonly name = "MailFormatError";
  readonly code = "bad_message";
  readonly errors: readonly FormatProblem[];

  constructor(what: string, errors: readonly FormatProblem[]) {
    const reasons = errors.map(({ path, message }) => (path === "" ? message : `${path} ${message}`));
    super(`not a valid ${what}: ${reasons.join("; ")}`);
    this.errors = errors;
  }
}

/** The value of a check that succeeded; a throw for one that did not. */
export function valueOrThrow<T>(what: string, checked: Checked<T>): T {
  if (!checked.ok) throw new MailFormatError(what, checked.errors);
  return checked.value;
}

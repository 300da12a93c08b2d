/** Reference strings of swarm files: what they name, and what to write instead of those that name nothing. */
import { didYouMean } from "../mail/swarm-file/suggest.js";
import { PYTHON_ACTIONS, PYTHON_AGENTS, pythonName } from "./python-references.js";

export type Reference =
  | { readonly kind: "module"; readonly specifier: string; readonly exportName: string }
  | { readonly kind: "builtin"; readonly name: string };

/** A reference that leads nowhere. */
export class BadReferenceError extends Error {
  override readonly name = "BadReferenceError";
  readonly code = "bad_reference";
  readonly hint: string | undefined;
  constructor(message: string, hint?: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/**
 * @param kind what is expected there: names of Python code are known for agents and for actions.
 * @throws BadReferenceError when the text is no reference that can be followed.
 */
export function parseReference(text: string, kind: "agent" | "action"): Reference {
  if (text.startsWith("module:")) return moduleReference(text);
  if (text.startsWith("mail:")) return { kind: "builtin", name: text.slice("mail:".length) };
  const python = pythonName(text);
  if (python !== undefined) return pythonReference(text, python, kind);
  if (text.startsWith("url::")) {
    throw new BadReferenceError(
      `'${text}': code is not loaded from a URL`,
      "download it and write module:./file.js#export; url:: works for texts inside agent_params",
    );
  }
  const looksLikeFile = /\.[cm]?[jt]s(?:#|$)/.test(text);
  throw new BadReferenceError(
    `'${text}' is not a reference`,
    looksLikeFile
      ? `did you mean 'module:${text}'?`
      : "write module:./file.js#export for code of your own, or mail:<name> for something built in",
  );
}

function moduleReference(text: string): Reference {
  const rest = text.slice("module:".length);
  const hash = rest.indexOf("#");
  const specifier = hash < 0 ? rest : rest.slice(0, hash);
  const exportName = hash < 0 ? "default" : rest.slice(hash + 1);
  if (specifier === "" || exportName === "") {
    throw new BadReferenceError(`'${text}' is incomplete`, "write module:./file.js#export");
  }
  return { kind: "module", specifier, exportName };
}

function pythonReference(text: string, python: string, kind: "agent" | "action"): Reference {
  const table = kind === "agent" ? PYTHON_AGENTS : PYTHON_ACTIONS;
  const builtin = Object.hasOwn(table, python) ? table[python] : undefined;
  if (builtin !== undefined) return { kind: "builtin", name: builtin.slice("mail:".length) };
  const near = didYouMean(python, Object.keys(table));
  const what = kind === "agent" ? "the agent" : "the action";
  throw new BadReferenceError(
    `'${text}' is Python code, which cannot run here`,
    `write ${what} in TypeScript or JavaScript and refer to it as module:./file.js#export` +
      (near?.startsWith("did you mean") === true ? `; or ${near}` : ""),
  );
}

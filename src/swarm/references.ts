/** Parses references in swarm files, with hints for invalid ones. */
import { didYouMean, MailroomError } from "../base/index.js";
import { PYTHON_ACTIONS, PYTHON_AGENTS, pythonName } from "./python-references.js";

export type CodeReference =
  | { readonly kind: "module"; readonly specifier: string; readonly exportName: string }
  | { readonly kind: "builtin"; readonly name: string };

/** The error of a reference that cannot be resolved. */
export function badReference(
  message: string,
  hint?: string,
  options: { readonly cause?: unknown } = {},
): MailroomError {
  return new MailroomError("bad_reference", message, {
    ...options,
    details: hint === undefined ? {} : { hint },
  });
}

/**
 * @param kind the expected kind, which selects the table of Python names.
 * @throws MailroomError `bad_reference` when the text is not a valid reference.
 */
export function parseReference(text: string, kind: "agent" | "action"): CodeReference {
  if (text.startsWith("module:")) return moduleReference(text);
  if (text.startsWith("mail:")) return { kind: "builtin", name: text.slice("mail:".length) };
  const python = pythonName(text);
  if (python !== undefined) return pythonReference(text, python, kind);
  if (text.startsWith("url::")) {
    throw badReference(
      `'${text}': code cannot be loaded from a URL`,
      "download it and write module:./file.js#export; url:: works for texts inside agent_params",
    );
  }
  const looksLikeFile = /\.[cm]?[jt]s(?:#|$)/.test(text);
  throw badReference(
    `'${text}' is not a reference`,
    looksLikeFile
      ? `did you mean 'module:${text}'?`
      : "write module:./file.js#export for your own code, or mail:<name> for a built-in agent or action",
  );
}

function moduleReference(text: string): CodeReference {
  const rest = text.slice("module:".length);
  const hash = rest.indexOf("#");
  const specifier = hash < 0 ? rest : rest.slice(0, hash);
  const exportName = hash < 0 ? "default" : rest.slice(hash + 1);
  if (specifier === "" || exportName === "") {
    throw badReference(`'${text}' is incomplete`, "write module:./file.js#export");
  }
  return { kind: "module", specifier, exportName };
}

function pythonReference(text: string, python: string, kind: "agent" | "action"): CodeReference {
  const table = kind === "agent" ? PYTHON_AGENTS : PYTHON_ACTIONS;
  const builtin = Object.hasOwn(table, python) ? table[python] : undefined;
  if (builtin !== undefined) return { kind: "builtin", name: builtin.slice("mail:".length) };
  const near = didYouMean(python, Object.keys(table));
  const what = kind === "agent" ? "the agent" : "the action";
  throw badReference(
    `'${text}' is Python code, which cannot run here`,
    `write ${what} in TypeScript or JavaScript and refer to it as module:./file.js#export` +
      (near?.startsWith("did you mean") === true ? `; or ${near}` : ""),
  );
}

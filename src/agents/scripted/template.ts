/**
 * Templates of scripted agents: `{{body}}`, `{{match.city}}`, `{{answers.weather|no answer}}`, `{{match.n:number}}`.
 * The text after `|` is the default. A type after `:` converts the value to a number, a boolean or parsed JSON; it
 * requires the template to be a complete argument of an action.
 */
import { MailroomError } from "../../base/index.js";

const TEMPLATE_TYPES = ["number", "boolean", "json"] as const;
type TemplateType = (typeof TEMPLATE_TYPES)[number];

export interface Placeholder {
  /** `["match", "city"]` */
  readonly path: readonly string[];
  readonly type?: TemplateType;
  readonly fallback?: string;
}

export type Template = readonly (string | Placeholder)[];

/** Roots of placeholders, and whether a part must follow. */
const PLACEHOLDER_ROOTS: Readonly<Record<string, "plain" | "named">> = {
  body: "plain",
  subject: "plain",
  from: "plain",
  type: "plain",
  agent: "plain",
  swarm: "plain",
  task: "plain",
  question: "plain",
  result: "plain",
  match: "named",
  results: "named",
  answers: "named",
  remember: "named",
};

function badTemplate(message: string): MailroomError {
  return new MailroomError("bad_template", message);
}

const PLACEHOLDER = /^\s*([A-Za-z_]\w*)(?:\.([^\s|:{}]+))?\s*(?::\s*(\w+)\s*)?(?:\|(.*))?$/s;

/** @throws MailroomError `bad_template` */
export function parseTemplate(text: string): Template {
  const parts: (string | Placeholder)[] = [];
  let rest = text;
  while (rest !== "") {
    const start = rest.indexOf("{{");
    if (start < 0) break;
    const end = rest.indexOf("}}", start);
    if (end < 0) throw badTemplate(`'${rest.slice(start)}' has no closing '}}'`);
    if (start > 0) parts.push(rest.slice(0, start));
    parts.push(parsePlaceholder(rest.slice(start + 2, end)));
    rest = rest.slice(end + 2);
  }
  if (rest !== "") parts.push(rest);
  return parts;
}

function parsePlaceholder(source: string): Placeholder {
  const shown = `'{{${source}}}'`;
  const [, root = "", name, type, fallback] = PLACEHOLDER.exec(source) ?? [];
  if (root === "") {
    throw badTemplate(`${shown} is not a placeholder; write {{name}}, {{name.part}} or {{name|default}}`);
  }
  const kind = Object.hasOwn(PLACEHOLDER_ROOTS, root) ? PLACEHOLDER_ROOTS[root] : undefined;
  if (kind === undefined) {
    throw badTemplate(
      `${shown}: unknown name '${root}'; known names: ${Object.keys(PLACEHOLDER_ROOTS).join(", ")}`,
    );
  }
  if (kind === "named" && name === undefined) {
    throw badTemplate(`${shown} is incomplete: write {{${root}.…}}`);
  }
  if (kind === "plain" && name !== undefined) {
    throw badTemplate(`${shown}: '${root}' has no parts: write {{${root}}}`);
  }
  if (type !== undefined && !isTemplateType(type)) {
    throw badTemplate(`${shown}: unknown type '${type}'; known types: ${TEMPLATE_TYPES.join(", ")}`);
  }
  return {
    path: name === undefined ? [root] : [root, name],
    ...(type === undefined ? {} : { type }),
    ...(fallback === undefined ? {} : { fallback }),
  };
}

function isTemplateType(type: string): type is TemplateType {
  return TEMPLATE_TYPES.some((known) => known === type);
}

/** Looks up a placeholder's path. Returns `undefined` when there is no value. */
export type Lookup = (path: readonly string[]) => string | undefined;

export type Rendered =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** Returns a text, or the typed value of a single typed placeholder. */
export function renderTemplate(template: Template, lookup: Lookup): Rendered {
  const [only] = template;
  if (template.length === 1 && typeof only === "object" && only.type !== undefined) {
    const text = resolve(only, lookup);
    return text === undefined ? noValue(only) : convert(only, only.type, text);
  }
  let text = "";
  for (const part of template) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = resolve(part, lookup);
    if (value === undefined) return noValue(part);
    text += value;
  }
  return { ok: true, value: text };
}

function resolve(placeholder: Placeholder, lookup: Lookup): string | undefined {
  return lookup(placeholder.path) ?? placeholder.fallback;
}

function noValue({ path }: Placeholder): Rendered {
  const name = path.join(".");
  return { ok: false, message: `{{${name}}} has no value; add a default: {{${name}|…}}` };
}

function convert({ path }: Placeholder, type: TemplateType, text: string): Rendered {
  const wrong: Rendered = {
    ok: false,
    message: `{{${path.join(".")}:${type}}} is ${JSON.stringify(text)}, which is not a ${type}`,
  };
  switch (type) {
    case "number": {
      const value = text.trim() === "" ? Number.NaN : Number(text);
      return Number.isFinite(value) ? { ok: true, value } : wrong;
    }
    case "boolean":
      return text === "true" || text === "false" ? { ok: true, value: text === "true" } : wrong;
    case "json":
      try {
        return { ok: true, value: JSON.parse(text) };
      } catch {
        return wrong;
      }
  }
}

/**
 * Templates of scripted agents: `{{body}}`, `{{match.city}}`, `{{answers.weather|no answer}}`, `{{match.n:number}}`.
 * A text after `|` is used when there is no value. A type after `:` is allowed where the template is the whole of an
 * action's argument, and makes a number, a boolean or parsed JSON of it.
 */

const TEMPLATE_TYPES = ["number", "boolean", "json"] as const;
type TemplateType = (typeof TEMPLATE_TYPES)[number];

export interface Placeholder {
  /** `["match", "city"]` */
  readonly path: readonly string[];
  readonly type?: TemplateType;
  readonly fallback?: string;
}

export type Template = readonly (string | Placeholder)[];

/** Roots of placeholders, and whether they stand alone or name something. */
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

class TemplateSyntaxError extends Error {
  override readonly name = "TemplateSyntaxError";
  readonly code = "bad_template";
}

const PLACEHOLDER = /^\s*([A-Za-z_]\w*)(?:\.([^\s|:{}]+))?\s*(?::\s*(\w+)\s*)?(?:\|(.*))?$/s;

/** @throws TemplateSyntaxError that says what is wrong with which placeholder. */
export function parseTemplate(text: string): Template {
  const parts: (string | Placeholder)[] = [];
  let rest = text;
  while (rest !== "") {
    const start = rest.indexOf("{{");
    if (start < 0) break;
    const end = rest.indexOf("}}", start);
    if (end < 0) throw new TemplateSyntaxError(`'${rest.slice(start)}' has no closing '}}'`);
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
    throw new TemplateSyntaxError(
      `${shown} is not a placeholder: write {{name}}, {{name.part}} or {{name|default}}`,
    );
  }
  const kind = Object.hasOwn(PLACEHOLDER_ROOTS, root) ? PLACEHOLDER_ROOTS[root] : undefined;
  if (kind === undefined) {
    throw new TemplateSyntaxError(
      `${shown}: there is no '${root}'; known are ${Object.keys(PLACEHOLDER_ROOTS).join(", ")}`,
    );
  }
  if (kind === "named" && name === undefined) {
    throw new TemplateSyntaxError(`${shown} names nothing: write {{${root}.…}}`);
  }
  if (kind === "plain" && name !== undefined) {
    throw new TemplateSyntaxError(`${shown}: '${root}' has no parts: write {{${root}}}`);
  }
  if (type !== undefined && !isTemplateType(type)) {
    throw new TemplateSyntaxError(
      `${shown}: there is no type '${type}'; known are ${TEMPLATE_TYPES.join(", ")}`,
    );
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

/** Looks a placeholder's path up; `undefined` when there is no value. */
export type Lookup = (path: readonly string[]) => string | undefined;

export type Rendered =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** A text, or for a single typed placeholder the value of that type. */
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
  return { ok: false, message: `{{${name}}} has no value here; give it a default: {{${name}|…}}` };
}

function convert({ path }: Placeholder, type: TemplateType, text: string): Rendered {
  const wrong: Rendered = {
    ok: false,
    message: `{{${path.join(".")}:${type}}} is ${JSON.stringify(text)}, which is no ${type}`,
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

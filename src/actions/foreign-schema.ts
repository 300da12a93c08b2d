/**
 * Checks arguments against a schema that another program chose, such as an MCP server. The check takes time
 * proportional to the arguments, whatever the schema says: it runs on the event loop, where no time limit can stop it.
 *
 * What cannot be checked that way is not checked here. The server that wrote the schema checks its arguments itself.
 */
import { RE2JS } from "re2js";
import { MailroomError } from "../base/index.js";
import {
  type Dialect,
  dialectOf,
  type JsonSchemaObject,
  namesParts,
  type SchemaCheck,
  SchemaCompiler,
} from "./json-schema.js";

/** Characters of a schema as JSON. It is part of every prompt. */
const MAX_SCHEMA = 65_536;

/** Parts of a schema after its references have been followed, patterns by their size. */
const MAX_WEIGHT = 10_000;

/** Characters of the arguments multiplied by the weight of the schema. */
const MAX_WORK = 5_000_000;

const UNCHECKED: SchemaCheck = () => [];

/** @throws MailroomError `bad_action` when the schema cannot be used at all */
export function compileForeignSchema(schema: JsonSchemaObject): SchemaCheck {
  const { length } = JSON.stringify(schema);
  if (length > MAX_SCHEMA)
    throw unusable(`it has ${length} characters, and at most ${MAX_SCHEMA} are allowed`);
  const weight = new Weight(schema).total();
  if (weight === undefined) return UNCHECKED;
  const check = linear.compile(...inKnownDialect(schema));
  return (value) => (JSON.stringify(value).length * weight > MAX_WORK ? [] : check(value));
}

function unusable(problem: string): MailroomError {
  return new MailroomError("bad_action", `the schema of its arguments cannot be used: ${problem}`);
}

/** The dialects share what tools use, so an unknown one is read as the newest. */
function inKnownDialect(schema: JsonSchemaObject): [JsonSchemaObject, Dialect] {
  const dialect = dialectOf(schema);
  if (dialect !== undefined) return [schema, dialect];
  const { $schema: _unknown, ...rest } = schema;
  return [rest, "2020-12"];
}

// --- linear time ----------------------------------------------------------------------------------------------------

/** Formats are annotations in this dialect's default vocabulary, and their patterns are not linear. */
const linear = new SchemaCompiler(
  { validateFormats: false, code: { regExp: Object.assign(toPattern, { code: "" }) } },
  (ajv) => {
    // Ajv compares each item with each other.
    ajv.removeKeyword("uniqueItems");
    ajv.addKeyword({
      keyword: "uniqueItems",
      type: "array",
      schemaType: "boolean",
      validate: (wanted: boolean, items: readonly unknown[]) =>
        !wanted || new Set(items.map(canonical)).size === items.length,
    });
  },
);

/** Values that JSON Schema considers equal have the same text. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

/** A pattern of another language, or with lookaheads, accepts everything. */
function toPattern(pattern: string): { test(text: string): boolean } {
  return re2(pattern) ?? { test: () => true };
}

function re2(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch {
    return undefined;
  }
}

/** Values, not schemas. */
const DATA = new Set(["const", "enum", "default", "examples"]);

/** Counts the parts of a schema that a check may visit for each part of the arguments. */
class Weight {
  readonly #root: JsonSchemaObject;
  readonly #open = new Set<unknown>();
  #weight = 0;

  constructor(root: JsonSchemaObject) {
    this.#root = root;
  }

  /**
   * Undefined if the check would not be linear: the schema refers to itself, or is too heavy.
   * @throws MailroomError `bad_action` when it refers to a schema elsewhere
   */
  total(): number | undefined {
    return this.#add(this.#root) ? this.#weight : undefined;
  }

  #add(part: unknown): boolean {
    if (typeof part !== "object" || part === null) return true;
    this.#weight++;
    if (this.#weight > MAX_WEIGHT || this.#open.has(part)) return false;
    this.#open.add(part);
    const light = Object.entries(part).every(([key, value]: [string, unknown]) => this.#addEntry(key, value));
    this.#open.delete(part);
    return light;
  }

  #addEntry(key: string, value: unknown): boolean {
    if (DATA.has(key)) {
      this.#weight += JSON.stringify(value).length / 10;
      return true;
    }
    if (key === "$dynamicRef" || key === "$recursiveRef") return false;
    if (key === "$ref" && typeof value === "string") return this.#addReference(value);
    if (key === "pattern" && typeof value === "string") this.#weight += sizeOf(value);
    if (key === "patternProperties" && typeof value === "object" && value !== null) {
      for (const pattern of Object.keys(value)) this.#weight += sizeOf(pattern);
    }
    return this.#add(value);
  }

  #addReference(reference: string): boolean {
    if (reference.startsWith("#/")) return this.#add(this.#at(reference));
    if (reference.startsWith("#") || namesParts(this.#root)) return false;
    throw unusable(`it refers to another schema ('${reference.slice(0, 200)}')`);
  }

  #at(pointer: string): unknown {
    let at: unknown = this.#root;
    for (const segment of pointer.slice(2).split("/")) {
      const key = decoded(segment).replaceAll("~1", "/").replaceAll("~0", "~");
      at = typeof at === "object" && at !== null ? new Map(Object.entries(at)).get(key) : undefined;
    }
    return at;
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function sizeOf(pattern: string): number {
  return re2(pattern)?.programSize() ?? 1;
}

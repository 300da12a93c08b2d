/**
 * Parses JSON with positions: the value of a text, and the position of each part. Strict JSON (RFC 8259). Unlike
 * `JSON.parse` it reports duplicate keys.
 */
import { hasCode, MailroomError } from "../../base/index.js";
import { formatPath, type PathSegment } from "./problems.js";

export interface Place {
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
}

export interface LocatedJson {
  readonly value: unknown;
  readonly duplicateKeys: readonly (readonly PathSegment[])[];
  /** Returns the position of the part at a path (of its key, in an object), or of the nearest enclosing part. */
  placeOf(path: readonly PathSegment[]): Place;
}

/** Returns the position of the first mistake in a text that `parseJsonText` rejected. */
export function mistakeIn(error: unknown): Place | undefined {
  if (!hasCode(error, "bad_json")) return undefined;
  const { line, column } = error.details;
  return { line: Number(line), column: Number(column) };
}

const MAX_DEPTH = 200;

/** @throws MailroomError `bad_json`, with the position of the first mistake. */
export function parseJsonText(text: string): LocatedJson {
  const reader = new JsonReader(text);
  const value = reader.document();
  return {
    value,
    duplicateKeys: reader.duplicates,
    placeOf: (path) => {
      for (let length = path.length; length > 0; length--) {
        const offset = reader.offsets.get(formatPath(path.slice(0, length)));
        if (offset !== undefined) return placeAt(text, offset);
      }
      return placeAt(text, reader.offsets.get("") ?? 0);
    },
  };
}

function placeAt(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  const lastBreak = before.lastIndexOf("\n");
  return { line: before.split("\n").length, column: offset - lastBreak };
}

class JsonReader {
  readonly offsets = new Map<string, number>();
  readonly duplicates: PathSegment[][] = [];
  readonly #text: string;
  #at: number;

  constructor(text: string) {
    this.#text = text;
    // Some editors begin a file with a byte order mark.
    this.#at = text.startsWith("\uFEFF") ? 1 : 0;
  }

  document(): unknown {
    this.#space();
    this.offsets.set("", this.#at);
    const value = this.#value([]);
    this.#space();
    if (this.#at < this.#text.length) this.#fail("unexpected text after the end of the value");
    return value;
  }

  #value(path: PathSegment[]): unknown {
    if (path.length > MAX_DEPTH) this.#fail(`nested more than ${MAX_DEPTH} levels deep`);
    const first = this.#text[this.#at];
    if (first === "{") return this.#object(path);
    if (first === "[") return this.#array(path);
    if (first === '"') return this.#string();
    if (first === undefined) this.#fail("unexpected end of the text, expected a value");
    return this.#word();
  }

  #object(path: PathSegment[]): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    this.#at++;
    this.#space();
    if (this.#take("}")) return object;
    for (;;) {
      this.#space();
      const start = this.#at;
      if (this.#text[start] === "}") this.#fail("unexpected comma before the closing brace");
      if (this.#text[start] !== '"') this.#fail("expected a key in double quotes");
      const key = this.#string();
      const inner = [...path, key];
      if (Object.hasOwn(object, key)) this.duplicates.push(inner);
      this.offsets.set(formatPath(inner), start);
      this.#space();
      if (!this.#take(":")) this.#fail(`expected ':' after the key "${key}"`);
      this.#space();
      const value = this.#value(inner);
      // Not by assignment, which would treat the key __proto__ differently.
      Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
      this.#space();
      if (this.#take("}")) return object;
      if (!this.#take(",")) this.#fail("expected ',' or '}'");
    }
  }

  #array(path: PathSegment[]): unknown[] {
    const array: unknown[] = [];
    this.#at++;
    this.#space();
    if (this.#take("]")) return array;
    for (;;) {
      this.#space();
      if (this.#text[this.#at] === "]") this.#fail("unexpected comma before the closing bracket");
      const inner = [...path, array.length];
      this.offsets.set(formatPath(inner), this.#at);
      array.push(this.#value(inner));
      this.#space();
      if (this.#take("]")) return array;
      if (!this.#take(",")) this.#fail("expected ',' or ']'");
    }
  }

  #string(): string {
    const start = this.#at;
    for (let index = start + 1; index < this.#text.length; index++) {
      const character = this.#text[index];
      if (character === "\\") index++;
      else if (character === '"') {
        this.#at = index + 1;
        return String(this.#native(start));
      } else if (character === "\n") break;
    }
    return this.#fail("missing closing quote in this line");
  }

  /** Numbers, `true`, `false` and `null`. */
  #word(): unknown {
    const start = this.#at;
    const word = /[^\s,:[\]{}"]*/y;
    word.lastIndex = start;
    word.test(this.#text);
    this.#at = Math.max(word.lastIndex, start + 1);
    return this.#native(start);
  }

  /** `JSON.parse` handles escapes and numbers. */
  #native(start: number): unknown {
    const source = this.#text.slice(start, this.#at);
    try {
      return JSON.parse(source);
    } catch {
      this.#at = start;
      return this.#fail(
        `${source.startsWith('"') ? "this string has a character that must be escaped" : `'${source}' is not a JSON value`}`,
      );
    }
  }

  #space(): void {
    while (/[ \t\r\n]/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #fail(message: string): never {
    throw new MailroomError("bad_json", message, { details: { ...placeAt(this.#text, this.#at) } });
  }
}

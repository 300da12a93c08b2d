/**
 * JSON with places: the value of a text, and where in it each part stands. Strict JSON (RFC 8259) and, beyond what
 * `JSON.parse` notices, keys that are given twice.
 */
import { formatPath, type PathSegment } from "./problems.js";

export interface Place {
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
}

export interface LocatedJson {
  readonly value: unknown;
  readonly duplicateKeys: readonly (readonly PathSegment[])[];
  /** Where the part at a path stands (its key, in an object), or the nearest part around it. */
  placeOf(path: readonly PathSegment[]): Place;
}

export class JsonTextError extends Error {
  override readonly name = "JsonTextError";
  readonly code = "bad_json";
  readonly place: Place;
  constructor(message: string, place: Place) {
    super(message);
    this.place = place;
  }
}

const MAX_DEPTH = 200;

/** @throws JsonTextError with the place of the first mistake. */
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
    // Editors on some systems begin a file with a byte order mark.
    this.#at = text.startsWith("\uFEFF") ? 1 : 0;
  }

  document(): unknown {
    this.#space();
    this.offsets.set("", this.#at);
    const value = this.#value([]);
    this.#space();
    if (this.#at < this.#text.length) this.#fail("there is more text after the end of the value");
    return value;
  }

  #value(path: PathSegment[]): unknown {
    if (path.length > MAX_DEPTH) this.#fail(`nested more than ${MAX_DEPTH} levels deep`);
    const first = this.#text[this.#at];
    if (first === "{") return this.#object(path);
    if (first === "[") return this.#array(path);
    if (first === '"') return this.#string();
    if (first === undefined) this.#fail("the text ends where a value should be");
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
      if (this.#text[start] === "}") this.#fail("a comma must not stand before the closing brace");
      if (this.#text[start] !== '"') this.#fail("expected a key in double quotes");
      const key = this.#string();
      const inner = [...path, key];
      if (Object.hasOwn(object, key)) this.duplicates.push(inner);
      this.offsets.set(formatPath(inner), start);
      this.#space();
      if (!this.#take(":")) this.#fail(`expected ':' after the key "${key}"`);
      this.#space();
      const value = this.#value(inner);
      // Not by assignment: a key called __proto__ is a key like any other.
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
      if (this.#text[this.#at] === "]") this.#fail("a comma must not stand before the closing bracket");
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
    return this.#fail("this text has no closing quote on its line");
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

  /** Leaves the details of escapes and numbers to the parser that everybody uses. */
  #native(start: number): unknown {
    const source = this.#text.slice(start, this.#at);
    try {
      return JSON.parse(source);
    } catch {
      this.#at = start;
      return this.#fail(
        `${source.startsWith('"') ? "this text has a character that must be escaped" : `'${source}' is not a JSON value`}`,
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
    throw new JsonTextError(message, placeAt(this.#text, this.#at));
  }
}

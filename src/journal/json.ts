/** Copies input, so that it is JSON and bounded, and no caller keeps a reference into a state. */
import { MailroomError } from "../base/index.js";

function notStorable(message: string): MailroomError {
  return new MailroomError("not_storable", message);
}

export interface JsonLimits {
  /** Characters of its strings and names, plus a constant for each value. */
  readonly size: number;
  readonly depth: number;
}

const DEFAULT_JSON_LIMITS: JsonLimits = { size: 16 * 1024 * 1024, depth: 200 };

/**
 * A copy as `JSON.parse(JSON.stringify(value))` would make it: `undefined` is dropped from objects and `toJSON` is
 * honored.
 * @throws MailroomError `not_storable` for a BigInt, a cycle, a function or symbol in place of a value, or too large a value
 */
export function copyJson<T>(value: T, limits: JsonLimits = DEFAULT_JSON_LIMITS): T {
  const copier = new Copier(limits);
  // The copy has the shape of T: only distinctions that JSON does not have are lost.
  return copier.copy(value, 0) as T;
}

class Copier {
  readonly #limits: JsonLimits;
  #size = 0;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  copy(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "string":
        this.#count(value.length + 2);
        return value;
      case "boolean":
        this.#count(5);
        return value;
      case "number":
        this.#count(8);
        // JSON has one zero.
        return Number.isFinite(value) ? value + 0 : null;
      case "undefined":
        return undefined;
      case "object":
        break;
      default:
        throw notStorable(`a ${typeof value} is not JSON`);
    }
    if (value === null) return null;
    if (depth >= this.#limits.depth) {
      throw notStorable(`it is nested deeper than ${this.#limits.depth} levels, or refers to itself`);
    }
    if (Array.isArray(value)) {
      this.#count(2 + value.length);
      // With its final length: a growing array reserves 17 slots, and most of these copies stay in memory.
      const items = new Array<unknown>(value.length);
      for (let index = 0; index < value.length; index++)
        items[index] = this.copy(value[index], depth + 1) ?? null;
      return items;
    }
    if ("toJSON" in value && typeof value.toJSON === "function") {
      return this.copy(value.toJSON(), depth + 1);
    }
    const copy: Record<string, unknown> = {};
    if (!isRecord(value)) return copy;
    // Without a list of the names: it would be garbage, and this runs for every answer.
    for (const name in value) {
      if (!Object.hasOwn(value, name)) continue;
      const item = value[name];
      if (item === undefined || typeof item === "function" || typeof item === "symbol") continue;
      this.#count(name.length + 4);
      const copied = this.copy(item, depth + 1);
      if (copied === undefined) continue;
      if (name === "__proto__") {
        const plain = { enumerable: true, configurable: true, writable: true };
        Object.defineProperty(copy, name, { value: copied, ...plain });
      } else copy[name] = copied;
    }
    return copy;
  }

  #count(size: number): void {
    this.#size += size;
    if (this.#size > this.#limits.size) {
      throw notStorable(`it is larger than ${this.#limits.size} characters`);
    }
  }
}

function isRecord(value: object): value is Readonly<Record<string, unknown>> {
  return !Array.isArray(value);
}

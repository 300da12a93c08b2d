/** Copies what others hand in, so that it is JSON, is bounded, and nobody outside holds a reference into a state. */

export class NotStorableError extends Error {
  override readonly name = "NotStorableError";
  readonly code = "not_storable";
}

export interface JsonLimits {
  /** Characters of the strings and names in it, with a little for each value. */
  readonly size: number;
  readonly depth: number;
}

export const DEFAULT_JSON_LIMITS: JsonLimits = { size: 16 * 1024 * 1024, depth: 200 };

/**
 * A copy as `JSON.parse(JSON.stringify(value))` would make it: `undefined` is dropped from objects and `toJSON` is
 * honored.
 * @throws NotStorableError for a BigInt, a circle, a function or symbol where a value must be, or too much
 */
export function copyJson<T>(value: T, limits: JsonLimits = DEFAULT_JSON_LIMITS): T {
  const copier = new Copier(limits);
  // What goes in as T comes out with the same shape: only what JSON cannot tell apart is changed.
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
        throw new NotStorableError(`a ${typeof value} is not JSON`);
    }
    if (value === null) return null;
    if (depth >= this.#limits.depth) {
      throw new NotStorableError(
        `it is nested deeper than ${this.#limits.depth} levels, or refers to itself`,
      );
    }
    if (Array.isArray(value)) {
      this.#count(2 + value.length);
      const items: unknown[] = [];
      for (let index = 0; index < value.length; index++)
        items.push(this.copy(value[index], depth + 1) ?? null);
      return items;
    }
    if ("toJSON" in value && typeof value.toJSON === "function") {
      return this.copy(value.toJSON(), depth + 1);
    }
    const copy: Record<string, unknown> = {};
    if (!isRecord(value)) return copy;
    // Their names alone: pairs of them would be garbage, and this is done for every answer.
    for (const name of Object.keys(value)) {
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
      throw new NotStorableError(`it is larger than ${this.#limits.size} characters`);
    }
  }
}

function isRecord(value: object): value is Readonly<Record<string, unknown>> {
  return !Array.isArray(value);
}

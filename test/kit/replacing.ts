import type { Store } from "../../src/engine/ports.js";

/** An object with some members replaced. The others work on the original, including its private fields. */
export function replacing<T extends object>(original: T, parts: Partial<T>): T {
  return new Proxy(original, {
    get: (target, name) => {
      if (Object.hasOwn(parts, name)) return Reflect.get(parts, name);
      const found: unknown = Reflect.get(target, name, target);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}

/** Wraps a store and counts the journals read from it. */
export function countingReads(store: Store): { readonly store: Store; readonly reads: () => number } {
  let reads = 0;
  const counted = replacing(store, {
    read: (...args) => {
      reads++;
      return store.read(...args);
    },
    readMany: (journals) => {
      reads += journals.length;
      return store.readMany(journals);
    },
    readSnapshot: (journal) => {
      reads++;
      return store.readSnapshot(journal);
    },
  });
  return { store: counted, reads: () => reads };
}

/** The key-value memory of one instance, as actions get it. */
import type { InstanceId, KeyValueStore, MemoryItem, MemoryListOptions } from "./ports.js";

export interface InstanceMemory {
  get(key: string): Promise<MemoryItem | undefined>;
  set(key: string, value: string): Promise<void>;
  delete(key: string): Promise<boolean>;
  list(options: MemoryListOptions): Promise<readonly MemoryItem[]>;
}

export function memoryOf(memory: KeyValueStore, instance: InstanceId): InstanceMemory {
  return {
    get: (key) => memory.get(instance, key),
    set: (key, value) => memory.set(instance, key, value),
    delete: (key) => memory.delete(instance, key),
    list: (options) => memory.list(instance, options),
  };
}

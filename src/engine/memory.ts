/**
 * The key–value memory of instances (decisions H3): what agents want to keep beyond a task. The store implements it;
 * whoever wants it kept elsewhere can hand in an implementation of their own.
 */
import type { InstanceId } from "./ports.js";

export interface MemoryItem {
  readonly key: string;
  readonly value: string;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

export interface MemoryListOptions {
  /** Only keys that begin with this. */
  readonly prefix?: string;
  /** Only keys that come after this one. */
  readonly after?: string;
  readonly limit: number;
}

/** Every call names the instance: no instance sees what another one keeps (law 5). */
export interface KeyValueMemory {
  get(instance: InstanceId, key: string): Promise<MemoryItem | undefined>;
  /**
   * Resolves when it is durable.
   * @throws an Error with code `row_conflict` when the instance keeps too much already
   */
  set(instance: InstanceId, key: string, value: string): Promise<void>;
  /** Whether there was something to remove. */
  delete(instance: InstanceId, key: string): Promise<boolean>;
  /** In the order of the keys. */
  list(instance: InstanceId, options: MemoryListOptions): Promise<readonly MemoryItem[]>;
}

/** The memory of one instance, as actions get it. */
export interface InstanceMemory {
  get(key: string): Promise<MemoryItem | undefined>;
  set(key: string, value: string): Promise<void>;
  delete(key: string): Promise<boolean>;
  list(options: MemoryListOptions): Promise<readonly MemoryItem[]>;
}

export function memoryOf(memory: KeyValueMemory, instance: InstanceId): InstanceMemory {
  return {
    get: (key) => memory.get(instance, key),
    set: (key, value) => memory.set(instance, key, value),
    delete: (key) => memory.delete(instance, key),
    list: (options) => memory.list(instance, options),
  };
}

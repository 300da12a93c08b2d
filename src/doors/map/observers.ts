/** Callers that an admin lets observe all conversations that are not tasks (adoption level 4). */
import type { ConversationReads, ObserverPut } from "../../conversations/index.js";
import type { Store } from "../../engine/index.js";

export class Observers {
  readonly #store: Store;
  readonly #index: ConversationReads;
  #principals: ReadonlySet<string> = new Set();

  constructor(store: Store, index: ConversationReads) {
    this.#store = store;
    this.#index = index;
  }

  /** To be called before the first connection. */
  async load(): Promise<void> {
    this.#principals = new Set(await this.#index.observers());
  }

  has(principal: string): boolean {
    return this.#principals.has(principal);
  }

  list(): string[] {
    return [...this.#principals].sort();
  }

  async put(principal: string, observes: boolean): Promise<void> {
    const row: ObserverPut = { kind: "map_observer.put", principal, observes };
    await this.#store.commit({ appends: [], rows: [row] });
    await this.load();
  }
}

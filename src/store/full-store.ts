import type { A2aState } from "../a2a/state.js";
import type { TokenIndex } from "../auth/tokens/port.js";
import type { ConversationIndex } from "../conversations/ports.js";
import type { KeyValueMemory } from "../engine/memory.js";
import type { Store } from "../engine/ports.js";
import type { FederationReads } from "../federation/ports.js";
import type { HttpState } from "../http/state.js";
import type { StoreDriver } from "../journal/ports.js";
import type { MeshReads } from "../mesh/queue.js";
import type { OutboxReads } from "../outbox/ports.js";

/** A store with a place for everything that Mailroom keeps: what every module asks of it, and nothing of how it is made. */
export interface FullStore extends Store {
  /** What its writer writes with; for whoever needs a writer of their own over the same data. */
  readonly driver: StoreDriver;
  readonly tokens: TokenIndex;
  readonly http: HttpState;
  readonly a2a: A2aState;
  readonly outbox: OutboxReads;
  readonly federation: FederationReads;
  readonly conversations: ConversationIndex;
  readonly mesh: MeshReads;
  readonly memory: KeyValueMemory;
}

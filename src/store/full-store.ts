import type { TokenReads } from "../auth/index.js";
import type { ConversationReads } from "../conversations/index.js";
import type { ApprovalReads, KeyValueStore, Store, UsageReads } from "../engine/index.js";
import type { FederationReads } from "../federation/index.js";
import type { StoreDriver } from "../journal/index.js";
import type { MeshReads } from "../mesh/index.js";
import type { OutboxReads } from "../outbox/index.js";
import type { A2aStore } from "./ports/a2a.js";
import type { HttpStore } from "./ports/http.js";
import type { SearchIndex } from "./ports/search.js";

/** A store with the ports of all modules, independent of the database behind it. */
export interface FullStore extends Store {
  /** What its writer writes with; for programs that need their own writer over the same data. */
  readonly driver: StoreDriver;
  readonly tokens: TokenReads;
  readonly http: HttpStore;
  readonly a2a: A2aStore;
  readonly outbox: OutboxReads;
  readonly federation: FederationReads;
  readonly conversations: ConversationReads;
  readonly mesh: MeshReads;
  readonly memory: KeyValueStore;
  readonly approvals: ApprovalReads;
  readonly usage: UsageReads;
  /** Opened on first use and closed with the store. Absent in a store that cannot search. */
  searchIndex?(): SearchIndex;
  /** Bytes on disk, of the data and of the log before it. Absent where that is not known. */
  size?(): { readonly store: number; readonly wal: number };
}

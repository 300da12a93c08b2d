/** Federation's tables, which the store implements. */
import type { Store } from "../engine/index.js";
import type { JournalKey, RowWrite } from "../journal/index.js";
import type { OutboxReads } from "../outbox/index.js";

/** A registered swarm: the entry as JSON, without credentials (decision C7). */
export interface SwarmPut extends RowWrite {
  readonly kind: "federation.swarm.put";
  readonly name: string;
  readonly entry: string;
}

export interface SwarmRemove extends RowWrite {
  readonly kind: "federation.swarm.remove";
  readonly name: string;
}

/** A swarm found by discovery. It has no effect until an admin accepts it. */
export interface Proposal {
  readonly name: string;
  readonly baseUrl: string;
  /** URL of the server that listed it. */
  readonly source: string;
  readonly proposedAt: number;
}

/** The first proposal of a name stays, so that a later one cannot replace what an admin is reviewing. */
export interface ProposalPut extends RowWrite {
  readonly kind: "federation.proposal.put";
  readonly proposal: Proposal;
  /** Limit for all proposals; further ones are dropped. */
  readonly most: number;
}

export interface ProposalRemove extends RowWrite {
  readonly kind: "federation.proposal.remove";
  readonly name: string;
}

/** An accepted message, keyed by authenticated peer and message id (decision A4). */
export interface Received {
  readonly peer: string;
  readonly messageId: string;
  readonly taskId: string;
  /** The instance that received it, as in the receipt. */
  readonly runner: string;
  readonly at: number;
}

/** Fails the commit if the message was already received. */
export interface ReceivedPut extends RowWrite {
  readonly kind: "federation.received.put";
  readonly received: Received;
}

export interface ReceivedExpire extends RowWrite {
  readonly kind: "federation.received.expire";
  readonly before: number;
}

/** A peer and this server work on the same task: the peer asked us, or a local agent wrote to the peer. */
export interface Link {
  readonly peer: string;
  readonly key: JournalKey;
}

/** Removed together with the task. */
export interface LinkPut extends RowWrite {
  readonly kind: "federation.link.put";
  readonly taskId: string;
  readonly link: Link;
}

export type FederationRowWrite =
  | SwarmPut
  | SwarmRemove
  | ProposalPut
  | ProposalRemove
  | ReceivedPut
  | ReceivedExpire
  | LinkPut;

export interface FederationReads {
  /** All persistent entries, as JSON. */
  swarms(): Promise<readonly { readonly name: string; readonly entry: string }[]>;
  proposals(): Promise<readonly Proposal[]>;
  received(peer: string, messageId: string): Promise<Received | undefined>;
  /** Links between peers and tasks with this id. */
  links(taskId: string): Promise<readonly Link[]>;
}

/** A store with the tables of federation and of the outbox. */
export interface FederationStore extends Store {
  readonly federation: FederationReads;
  readonly outbox: OutboxReads;
}

/**
 *
 * @throws Error when the store lacks the tables
 */
export function federationStoreOf(store: Store): FederationStore {
  if (isFederationStore(store)) return store;
  throw new Error("the store does not support federation: it needs 'federation' and 'outbox'");
}

function isFederationStore(store: Store): store is FederationStore {
  return "federation" in store && "outbox" in store;
}

/** What federation keeps beside the journals. The store implements it. */
import type { JournalKey, RowWrite, Store } from "../engine/ports.js";
import type { OutboxReads } from "../outbox/ports.js";

/** A swarm of the registry. The text is the entry as JSON; it never holds a credential (decisions C7). */
export interface SwarmPut extends RowWrite {
  readonly kind: "federation.swarm.put";
  readonly name: string;
  readonly entry: string;
}

export interface SwarmRemove extends RowWrite {
  readonly kind: "federation.swarm.remove";
  readonly name: string;
}

/** A swarm that discovery found. It is nothing but a suggestion until an admin accepts it. */
export interface Proposal {
  readonly name: string;
  readonly baseUrl: string;
  /** Who said so. */
  readonly source: string;
  readonly proposedAt: number;
}

/** The first proposal of a name stays: a later one cannot replace what an admin may be looking at. */
export interface ProposalPut extends RowWrite {
  readonly kind: "federation.proposal.put";
  readonly proposal: Proposal;
  /** Proposals in all; further ones are dropped. */
  readonly most: number;
}

export interface ProposalRemove extends RowWrite {
  readonly kind: "federation.proposal.remove";
  readonly name: string;
}

/** A message that was taken over: decisions A4, by authenticated peer and message id. */
export interface Received {
  readonly peer: string;
  readonly messageId: string;
  readonly taskId: string;
  /** The instance that got it, as it was answered. */
  readonly runner: string;
  readonly at: number;
}

/** Refused when the message was received before. */
export interface ReceivedPut extends RowWrite {
  readonly kind: "federation.received.put";
  readonly received: Received;
}

export interface ReceivedExpire extends RowWrite {
  readonly kind: "federation.received.expire";
  readonly before: number;
}

/** A peer and we work on a task: it asked us, or one of our agents wrote to it. */
export interface Link {
  readonly peer: string;
  readonly key: JournalKey;
}

/** Goes with the task: when that is removed, so is this. */
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
  /** Every kept entry, as text. */
  swarms(): Promise<readonly { readonly name: string; readonly entry: string }[]>;
  proposals(): Promise<readonly Proposal[]>;
  received(peer: string, messageId: string): Promise<Received | undefined>;
  /** Everything that links a peer with a task of this id. */
  links(taskId: string): Promise<readonly Link[]>;
}

/** A store with the tables of this room and of the outbox. */
export interface FederationStore extends Store {
  readonly federation: FederationReads;
  readonly outbox: OutboxReads;
}

/** @throws Error when the store has no tables for this room */
export function federationStoreOf(store: Store): FederationStore {
  if (isFederationStore(store)) return store;
  throw new Error("the store keeps nothing for federation: it needs 'federation' and 'outbox'");
}

function isFederationStore(store: Store): store is FederationStore {
  return "federation" in store && "outbox" in store;
}

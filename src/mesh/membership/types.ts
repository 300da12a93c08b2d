/** Membership data. Times are milliseconds since the epoch; keys are raw, in base64. */

export interface MeshIdentity {
  readonly agentId: string;
  readonly endpoint: string;
}

export interface Member {
  readonly agentId: string;
  readonly endpoint: string;
  readonly publicKey: string;
  readonly joinedAt: number;
  /** At the master: the invite with which it joined. */
  readonly inviteKey?: string;
}

export interface SwarmSettings {
  readonly allowMemberInvite: boolean;
  readonly requireApproval: boolean;
}

/** The stored record of a swarm, without its members. */
export interface SwarmRecord {
  readonly id: string;
  readonly name: string;
  readonly master: string;
  readonly joinedAt: number;
  readonly settings: SwarmSettings;
  /** The name under which agents of the MAIL swarm address its members (decision G3). */
  readonly alias: string;
  /** Changes of the master, the latest last. */
  readonly handovers?: readonly Handover[];
}

/** A change of the master. */
export interface Handover {
  readonly from: string;
  readonly to: string;
  readonly at: number;
  /** Absent if the old master has not confirmed the change, or its software signs no proofs. */
  readonly proof?: HandoverProof;
}

/** The signed part of the old master's `master_changed`. */
export interface HandoverProof {
  readonly sender: string;
  readonly message_id: string;
  readonly timestamp: string;
  readonly recipient: string;
  readonly content: string;
  readonly signature: string;
}

export interface Invite {
  /** Hash of the signed text of the token. The token itself is never stored (decision C7). */
  readonly key: string;
  readonly swarmId: string;
  readonly uses: number;
  readonly maxUses?: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  readonly createdAt: number;
}

export interface PendingJoin {
  readonly swarmId: string;
  readonly agentId: string;
  readonly endpoint: string;
  readonly publicKey: string;
  readonly inviteKey: string;
  readonly requestedAt: number;
  readonly status: "waiting" | "rejected";
}

export interface Ban {
  readonly swarmId: string;
  readonly agentId: string;
  readonly publicKey: string;
  readonly at: number;
  readonly reason?: string;
}

export interface Mute {
  readonly of: "agent" | "swarm";
  readonly id: string;
  readonly at: number;
  readonly reason?: string;
}

/** ASP: Public Key Registry. */
export interface CachedKey {
  readonly agentId: string;
  readonly publicKey: string;
  readonly fetchedAt: number;
  readonly endpoint?: string;
}

export interface Swarm extends SwarmRecord {
  readonly members: ReadonlyMap<string, Member>;
  readonly invites: ReadonlyMap<string, Invite>;
  readonly pending: ReadonlyMap<string, PendingJoin>;
  readonly bans: ReadonlyMap<string, Ban>;
}

/** The input of all membership decisions. */
export interface MembershipView {
  readonly swarms: ReadonlyMap<string, Swarm>;
  readonly mutedAgents: ReadonlyMap<string, Mute>;
  readonly mutedSwarms: ReadonlyMap<string, Mute>;
  readonly keys: ReadonlyMap<string, CachedKey>;
  /** Keys whose owners seal their messages, and since when. */
  readonly sealingKeys: ReadonlyMap<string, number>;
}

/** ASP: Lifecycle Event Notifications. A membership event for local observers. */
export interface LifecycleEvent {
  readonly action: string;
  readonly agentId: string;
  readonly initiatedBy?: string;
  readonly reason?: string;
}

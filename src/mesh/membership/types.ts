/** What an agent knows about its swarms. Times are milliseconds since the epoch; keys are in their raw base64 form. */

export interface MeshIdentity {
  readonly agentId: string;
  readonly endpoint: string;
}

export interface Member {
  readonly agentId: string;
  readonly endpoint: string;
  readonly publicKey: string;
  readonly joinedAt: number;
}

export interface SwarmSettings {
  readonly allowMemberInvite: boolean;
  readonly requireApproval: boolean;
}

/** What is stored about a swarm beside its members. */
export interface SwarmRecord {
  readonly id: string;
  readonly name: string;
  readonly master: string;
  readonly joinedAt: number;
  readonly settings: SwarmSettings;
  /** The name under which the agents of our MAIL swarm address its members (decisions G3). */
  readonly alias: string;
}

export interface Invite {
  /** Hash of the signed text of the token. The token itself is never stored (decisions C7). */
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

/** Everything that decisions rest on. */
export interface MeshView {
  readonly swarms: ReadonlyMap<string, Swarm>;
  readonly mutedAgents: ReadonlyMap<string, Mute>;
  readonly mutedSwarms: ReadonlyMap<string, Mute>;
  readonly keys: ReadonlyMap<string, CachedKey>;
  /** Keys whose owners seal what they send, and since when. */
  readonly sealingKeys: ReadonlyMap<string, number>;
}

/** A participant's session. It outlives its connection for a while, so that it can be resumed. */
import type { Principal } from "../../auth/index.js";
import type { Actor, MailCapabilities } from "../../conversations/index.js";

export const PARTICIPANT_TYPES = ["client", "agent", "gateway", "system"] as const;
export type ConnectedType = (typeof PARTICIPANT_TYPES)[number];

export interface SessionFacts {
  readonly id: string;
  readonly participantId: string;
  readonly participantType: ConnectedType;
  readonly space: string;
  readonly createdAt: number;
  readonly name?: string;
  readonly principal?: Principal;
}

export interface SessionGrant {
  readonly capabilities: MailCapabilities;
  readonly observer: boolean;
  readonly allSpaces?: true;
}

/** What the users of a session need of its connection. */
export interface SessionConnection {
  session: Session | undefined;
  /** Bytes waiting to be sent. */
  readonly buffered: number;
  send(text: string): void;
  close(code: number, reason: string): void;
}

export interface DisconnectPolicy {
  readonly agentBehavior: "unregister" | "orphan" | "grace-period";
  readonly gracePeriodMs?: number | undefined;
}

export function principalKey(principal: Principal | undefined): string | undefined {
  return principal === undefined ? undefined : `${principal.role}:${principal.id}`;
}

/** Whose limits a session counts toward: its principal's, or its own without one. */
export function partyOf({ principal, id }: Pick<Session, "principal" | "id">): string {
  return principalKey(principal) ?? id;
}

export class Session {
  readonly id: string;
  readonly participantId: string;
  readonly participantType: ConnectedType;
  readonly space: string;
  readonly createdAt: number;
  readonly name: string | undefined;
  principal: Principal | undefined;
  lastActiveAt: number;
  tokenHash = "";
  policy: DisconnectPolicy = { agentBehavior: "grace-period" };
  connection: SessionConnection | undefined;
  /** Ids of its agents in order of registration. The first one acts. */
  readonly agents = new Set<string>();
  /** Agents that were added, changed or removed since the session was stored. */
  readonly unsaved = new Set<string>();
  cancelExpiry: (() => void) | undefined;
  /** Set while its agents wait for it to reconnect. */
  cancelGrace: (() => void) | undefined;
  #grant: SessionGrant;
  #actor: Actor | undefined;

  constructor(facts: SessionFacts, grant: SessionGrant) {
    this.id = facts.id;
    this.participantId = facts.participantId;
    this.participantType = facts.participantType;
    this.space = facts.space;
    this.createdAt = facts.createdAt;
    this.lastActiveAt = facts.createdAt;
    this.name = facts.name;
    this.principal = facts.principal;
    this.#grant = grant;
  }

  get capabilities(): MailCapabilities {
    return this.#grant.capabilities;
  }

  regrant(grant: SessionGrant): void {
    this.#grant = grant;
    this.#actor = undefined;
  }

  setObserver(observer: boolean): void {
    this.regrant({ ...this.#grant, observer });
  }

  addAgent(id: string): void {
    this.agents.add(id);
    this.unsaved.add(id);
    this.#actor = undefined;
  }

  removeAgent(id: string): void {
    this.agents.delete(id);
    this.unsaved.add(id);
    this.#actor = undefined;
  }

  /** The id under which it writes: its first agent, else its own (REF-32). */
  get acting(): string {
    const [first] = this.agents;
    return first ?? this.participantId;
  }

  get actor(): Actor {
    const instance = instanceOf(this.principal);
    const principal = principalKey(this.principal);
    const { observer, capabilities, allSpaces } = this.#grant;
    this.#actor ??= {
      acting: this.acting,
      identities: new Set([this.acting, this.participantId, this.id, ...this.agents]),
      observer,
      capabilities,
      ...(allSpaces === true && { allSpaces }),
      space: this.space,
      ...(principal !== undefined && { principal }),
      ...(instance !== undefined && { instance }),
    };
    return this.#actor;
  }

  owns(id: string): boolean {
    return this.actor.identities.has(id);
  }
}

function instanceOf(principal: Principal | undefined): Actor["instance"] {
  if (principal === undefined) return undefined;
  const { role, id } = principal;
  return role === "user" || role === "admin" ? { role, id } : undefined;
}

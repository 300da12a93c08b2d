/** A participant's stay on the server. It outlives its connection for a while, so that it can be taken up again. */
import type { Principal } from "../../auth/principal.js";
import type { Caller, MailCapabilities } from "../domain/types.js";
import type { MapConnection } from "./connection.js";
import type { Subscription } from "./subscription.js";

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

export interface DisconnectPolicy {
  readonly agentBehavior: "unregister" | "orphan" | "grace-period";
  readonly gracePeriodMs?: number | undefined;
}

export function principalKey(principal: Principal | undefined): string | undefined {
  return principal === undefined ? undefined : `${principal.role}:${principal.id}`;
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
  connection: MapConnection | undefined;
  /** Ids of its agents, in the order of registration: the first one acts. */
  readonly agents = new Set<string>();
  readonly subscriptions = new Map<string, Subscription>();
  cancelExpiry: (() => void) | undefined;
  /** While its agents wait for it to come back. */
  cancelGrace: (() => void) | undefined;
  #grant: { capabilities: MailCapabilities; observer: boolean };
  #caller: Caller | undefined;

  constructor(facts: SessionFacts, grant: { capabilities: MailCapabilities; observer: boolean }) {
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

  regrant(grant: { capabilities: MailCapabilities; observer: boolean }): void {
    this.#grant = grant;
    this.#caller = undefined;
  }

  addAgent(id: string): void {
    this.agents.add(id);
    this.#caller = undefined;
  }

  removeAgent(id: string): void {
    this.agents.delete(id);
    this.#caller = undefined;
  }

  /** The id under which it writes: its first agent, else itself (map-mail 3.2). */
  get acting(): string {
    const [first] = this.agents;
    return first ?? this.participantId;
  }

  get caller(): Caller {
    const person = personOf(this.principal);
    this.#caller ??= {
      acting: this.acting,
      identities: new Set([this.acting, this.participantId, this.id, ...this.agents]),
      observer: this.#grant.observer,
      capabilities: this.#grant.capabilities,
      space: this.space,
      ...(person !== undefined && { person }),
    };
    return this.#caller;
  }

  owns(id: string): boolean {
    return this.caller.identities.has(id);
  }
}

function personOf(principal: Principal | undefined): Caller["person"] {
  if (principal === undefined) return undefined;
  const { role, id } = principal;
  return role === "user" || role === "admin" ? { role, id } : undefined;
}

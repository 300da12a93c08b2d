/** Decides what each caller may do on this server. The rules of a conversation apply in addition. */
import type { Authenticator, Principal } from "../../auth/index.js";
import type { MailCapabilities } from "../../conversations/index.js";
import type { ConnectedType } from "./session.js";

export interface AccessOptions {
  /** Without one, every client is accepted and remains anonymous. */
  readonly authenticator?: Authenticator;
  /** Whether clients without a credential are rejected. Default true if there is an authenticator. */
  readonly authRequired?: boolean;
  /** Clients may watch conversations without being members (decision F3). Default false. */
  readonly dev?: boolean;
  /** Every principal has a space of its own (decision F2). Default false. */
  readonly isolate?: boolean;
}

export interface AccessParts extends AccessOptions {
  /** The most that any participant may do. Default: everything. */
  readonly capabilities: Partial<MailCapabilities> | undefined;
  /** Agents of the swarm: only their member tokens may register under these names. */
  readonly isReserved: (agentId: string) => boolean;
  /** Callers that an admin lets observe. */
  readonly isObserver: (principal: string) => boolean;
}

/** A member token serves its agent (decision A5). It is in a conversation only if a user invited the agent. */
const OF_MEMBERS: Partial<MailCapabilities> = {
  canCreate: false,
  canJoin: false,
  canInvite: false,
  canCreateThreads: false,
};

const EVERYTHING: MailCapabilities = {
  canCreate: true,
  canJoin: true,
  canInvite: true,
  canViewHistory: true,
  canCreateThreads: true,
};

/** Ids of authenticated participants, which no agent may use. */
const PRINCIPAL_ID = /^(user|admin|member|agent|swarm):/i;

/** Ids that the server makes: of sessions, and of agents that chose none. */
export function isServerId(id: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id);
}

/** Why no caller may choose this id; `undefined` for a valid one. Ids are shown to people, who must not be misled. */
export function problemOfId(id: string): string | undefined {
  if (/\p{C}/u.test(id)) return "an id must not contain control or invisible characters";
  if (id.trim() !== id) return "an id must not begin or end with white space";
  if (/^system$/i.test(id)) return '"system" is the author of the server\'s own turns';
  if (/\p{Script=Latin}/u.test(id) && /\p{Script=Cyrillic}|\p{Script=Greek}/u.test(id)) {
    return "an id must not mix Latin letters with Cyrillic or Greek ones";
  }
  return id.normalize("NFKC") === id ? undefined : "an id must be in Unicode's form NFKC";
}

export class Access {
  readonly authenticator: Authenticator | undefined;
  readonly authRequired: boolean;
  readonly #parts: AccessParts;
  readonly #capabilities: MailCapabilities;

  constructor(parts: AccessParts) {
    this.#parts = parts;
    this.authenticator = parts.authenticator;
    this.authRequired = parts.authRequired ?? parts.authenticator !== undefined;
    this.#capabilities = { ...EVERYTHING, ...parts.capabilities };
  }

  spaceOf(principal: Principal | undefined): string {
    if (this.#parts.isolate !== true || principal === undefined) return "";
    return `${principal.role}:${principal.id}`;
  }

  /** The most that a principal may do in conversations. */
  mailFor(principal: Principal | undefined): MailCapabilities {
    return principal?.role === "member" ? { ...this.#capabilities, ...OF_MEMBERS } : this.#capabilities;
  }

  /** Admins, and users whom an admin lets, may watch conversations; in development mode clients may also watch native ones (decision F3). */
  canObserve(principal: Principal | undefined, type: ConnectedType): boolean {
    if (principal?.role === "admin") return true;
    if (principal?.role === "user" && this.#parts.isObserver(`user:${principal.id}`)) return true;
    return this.#parts.dev === true && type === "client" && principal?.role !== "member";
  }

  /** Admins observe every space (decision F3). */
  seesAllSpaces(principal: Principal | undefined): boolean {
    return this.#parts.isolate === true && principal?.role === "admin";
  }

  /** Whether the principal may choose this id for a participant or an agent. */
  canUseId(principal: Principal | undefined, id: string): boolean {
    if (principal?.role === "member" && principal.id === id) return true;
    return !PRINCIPAL_ID.test(id) && !this.isReserved(id);
  }

  /** Whose id it is, if the id itself says so. */
  ownerOf(id: string): string | undefined {
    if (/^(user|admin|member):/.test(id)) return id;
    return this.isReserved(id) ? `member:${id}` : undefined;
  }

  /** The names of the swarm's agents are reserved for their member tokens (decision A5). */
  isReserved(id: string): boolean {
    return this.#parts.isReserved(id);
  }
}

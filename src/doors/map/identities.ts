/** Who is behind the ids of participants and agents (REF-32). */
import type { IdOwner, ParticipantIdentity } from "../../conversations/index.js";
import type { Access } from "./access.js";
import type { ConnectedAgents } from "./connected-agents.js";
import { principalKey, type Session } from "./session.js";
import type { Sessions } from "./sessions.js";

export interface IdentitiesParts {
  readonly access: Access;
  readonly agents: ConnectedAgents;
  readonly sessions: Sessions;
  readonly stored: (space: string, ids: readonly string[]) => Promise<ReadonlyMap<string, IdOwner>>;
}

export class Identities {
  readonly #parts: IdentitiesParts;

  constructor(parts: IdentitiesParts) {
    this.#parts = parts;
  }

  /** What is known about the participant behind an id without reading the store. */
  identify(id: string, space: string): ParticipantIdentity {
    const { access, agents, sessions } = this.#parts;
    const agent = agents.find(space, id);
    if (agent !== undefined) {
      const { name, role } = agent;
      return {
        type: "agent",
        agentInfo: { agentId: id, ...(name !== undefined && { name }), ...(role !== undefined && { role }) },
        ...owned(principalKey(agent.session.principal)),
      };
    }
    const session = sessions.byParticipant(space, id) ?? sessions.byId(space, id);
    const principal = access.ownerOf(id) ?? principalKey(session?.principal);
    return { type: typeOf(id, session), ...owned(principal) };
  }

  /** Owners of ids, including those that are only reserved. */
  async owners(space: string, ids: readonly string[]): Promise<ReadonlyMap<string, IdOwner>> {
    const owners = new Map(await this.#parts.stored(space, ids));
    for (const id of ids) {
      const principal = this.#parts.access.ownerOf(id);
      if (principal !== undefined) owners.set(id, { principal, reserved: false });
    }
    return owners;
  }
}

function typeOf(id: string, session: Session | undefined): ParticipantIdentity["type"] {
  switch (session?.participantType) {
    case "client":
      return "user";
    case "system":
      return "system";
    default:
      return /^(user|admin):/.test(id) ? "user" : "agent";
  }
}

function owned(principal: string | undefined): { readonly principal?: string } {
  return principal === undefined ? {} : { principal };
}

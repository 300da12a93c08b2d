/** The address forms of `map/send`, and the recipients they resolve to (REF-30). */
import { z } from "zod";
import { MapError } from "../../conversations/index.js";
import type { Agent, ConnectedAgents } from "./connected-agents.js";
import type { Session } from "./session.js";

const id = z.string().min(1).max(256);
const depth = z.int().min(1).max(100).optional();
const yes = z.literal(true);

const oneAddress = z.union([
  id,
  z.object({ system: z.string().min(1), agent: id }),
  z.object({ agent: id }),
  z.object({ agents: z.array(id).max(1000) }),
  z.object({ scope: id }),
  z.object({ role: id, within: id.optional() }),
  z.object({ parent: yes }),
  z.object({ children: yes, depth }),
  z.object({ ancestors: yes, depth }),
  z.object({ descendants: yes, depth }),
  z.object({ siblings: yes }),
  z.object({ broadcast: yes }),
  z.object({ system: yes }),
  z.object({ participant: id }),
  z.object({ participants: z.enum(["all", "agents", "clients"]) }),
]);
type OneAddress = z.infer<typeof oneAddress>;

/** One address, or several. */
export const addressSchema = z.union([oneAddress, z.array(oneAddress).min(1).max(1000)], {
  error: "must be an agent id, an address such as { agent }, { scope } or { role }, or an array of these",
});
export type Address = z.infer<typeof addressSchema>;

export type Recipient =
  | { readonly kind: "agent"; readonly id: string; readonly agent: Agent }
  | { readonly kind: "participant"; readonly id: string; readonly session: Session };

export interface Directory {
  readonly agents: ConnectedAgents;
  /** Sessions in the space, connected or recently disconnected. */
  readonly sessionsOf: (space: string) => Iterable<Session>;
}

export interface Resolved {
  readonly recipients: readonly Recipient[];
  /** True if the recipients were named individually, not found by role, scope or broadcast. */
  readonly direct: boolean;
}

/** The agents and participants that an address names individually. */
export function namedRecipients(address: Address): readonly string[] {
  if (Array.isArray(address)) return address.flatMap(namedRecipients);
  if (typeof address === "string") return [address.replace(/^agent:/, "")];
  if ("participant" in address) return [address.participant];
  if ("agents" in address) return address.agents;
  return "agent" in address && !("system" in address) ? [address.agent] : [];
}

/** @throws MapError AGENT_NOT_FOUND, SCOPE_NOT_FOUND, ADDRESS_NOT_FOUND, FEDERATION_UNAVAILABLE, INVALID_PARAMS */
export function resolveAddress(address: Address, sender: Session, directory: Directory): Resolved {
  if (!Array.isArray(address)) return resolveOne(address, sender, directory);
  const all = address.map((one) => resolveOne(one, sender, directory));
  const recipients = new Map(all.flatMap((found) => found.recipients).map((one) => [one.id, one]));
  return { recipients: [...recipients.values()], direct: all.every(({ direct }) => direct) };
}

function resolveOne(address: OneAddress, sender: Session, directory: Directory): Resolved {
  const { agents } = directory;
  const { space } = sender;
  const group = (found: Iterable<Agent>): Resolved => ({
    recipients: others(found, sender.acting),
    direct: false,
  });
  if (typeof address === "string") return resolveText(address, sender, directory);
  if ("system" in address) {
    if (address.system !== true) throw new MapError("FEDERATION_UNAVAILABLE");
    const systems = [...directory.sessionsOf(space)].filter(
      ({ participantType }) => participantType === "system",
    );
    return { recipients: systems.map(participant), direct: false };
  }
  if ("agent" in address) return { recipients: [directly(address.agent, space, directory)], direct: true };
  if ("agents" in address) {
    const ids = [...new Set(address.agents)];
    return { recipients: ids.map((one) => directly(one, space, directory)), direct: true };
  }
  if ("scope" in address) return group(members(address.scope, space, agents));
  if ("role" in address) {
    const within =
      address.within === undefined ? agents.inSpace(space) : members(address.within, space, agents);
    return group([...within].filter(({ role }) => role === address.role));
  }
  if ("participant" in address) {
    const found = sessionOf(address.participant, space, directory);
    if (found === undefined) {
      throw new MapError("ADDRESS_NOT_FOUND", undefined, { participantId: address.participant });
    }
    return { recipients: [participant(found)], direct: true };
  }
  if ("participants" in address) return everybody(address.participants, sender, directory);
  if ("broadcast" in address) return group(agents.inSpace(space));
  const self = agents.find(space, sender.acting);
  if (self === undefined) {
    throw new MapError("INVALID_PARAMS", "to: the sender has no registered agent, so it has no relatives");
  }
  if ("parent" in address) {
    const parent = agents.parentOf(self);
    return {
      recipients: parent === undefined ? [] : [{ kind: "agent", id: parent.id, agent: parent }],
      direct: true,
    };
  }
  if ("children" in address) {
    return { ...group(descendantsOf(self, agents, address.depth ?? 1)), direct: true };
  }
  if ("descendants" in address) return group(descendantsOf(self, agents, address.depth ?? 100));
  if ("ancestors" in address) return group(ancestorsOf(self, agents, address.depth ?? 100));
  const parent = agents.parentOf(self);
  return group(parent === undefined ? [] : agents.childrenOf(parent));
}

function resolveText(address: string, sender: Session, directory: Directory): Resolved {
  if (directory.agents.find(sender.space, address) === undefined) {
    if (address.startsWith("agent:"))
      return resolveOne({ agent: address.slice(6) || address }, sender, directory);
    if (address.startsWith("scope:"))
      return resolveOne({ scope: address.slice(6) || address }, sender, directory);
  }
  return resolveOne({ agent: address }, sender, directory);
}

/** Resolves the id of an agent or a participant: `from` of a message must be a valid address. */
function directly(wanted: string, space: string, directory: Directory): Recipient {
  const agent = directory.agents.find(space, wanted);
  if (agent !== undefined) return { kind: "agent", id: wanted, agent };
  const session = sessionOf(wanted, space, directory);
  if (session !== undefined) return participant(session);
  throw new MapError("AGENT_NOT_FOUND", undefined, { agentId: wanted });
}

function sessionOf(wanted: string, space: string, { sessionsOf }: Directory): Session | undefined {
  let away: Session | undefined;
  for (const session of sessionsOf(space)) {
    if (session.participantId !== wanted && session.id !== wanted) continue;
    if (session.connection !== undefined) return session;
    away = session;
  }
  return away;
}

function everybody(which: "all" | "agents" | "clients", sender: Session, directory: Directory): Resolved {
  const recipients: Recipient[] = [];
  if (which !== "clients") recipients.push(...others(directory.agents.inSpace(sender.space), sender.acting));
  if (which !== "agents") {
    for (const session of directory.sessionsOf(sender.space)) {
      if (session.participantType === "client" && session !== sender) recipients.push(participant(session));
    }
  }
  return { recipients, direct: false };
}

function others(agents: Iterable<Agent>, self: string): Recipient[] {
  return [...agents]
    .filter((agent) => agent.id !== self)
    .map((agent) => ({ kind: "agent", id: agent.id, agent }));
}

function participant(session: Session): Recipient {
  return { kind: "participant", id: session.participantId, session };
}

function members(scopeId: string, space: string, agents: ConnectedAgents): Agent[] {
  return [...agents.requireScope(space, scopeId).members].flatMap((one) => agents.find(space, one) ?? []);
}

export function descendantsOf(self: Agent, agents: ConnectedAgents, depthLimit: number): Agent[] {
  const found = new Set<Agent>();
  let generation = [self];
  for (let level = 0; level < depthLimit && generation.length > 0; level++) {
    // Clients choose parents freely, so there may be a cycle.
    generation = generation.flatMap((agent) => agents.childrenOf(agent)).filter((agent) => !found.has(agent));
    for (const agent of generation) found.add(agent);
  }
  found.delete(self);
  return [...found];
}

export function ancestorsOf(self: Agent, agents: ConnectedAgents, depthLimit: number): Agent[] {
  const found = new Set<Agent>();
  let parent = agents.parentOf(self);
  while (parent !== undefined && !found.has(parent) && found.size < depthLimit) {
    found.add(parent);
    parent = agents.parentOf(parent);
  }
  found.delete(self);
  return [...found];
}

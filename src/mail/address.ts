/** MAIL: Addressing. `name` is an agent of this swarm, `name@swarm` an agent of that swarm. */
import type { MAILAddress } from "./message.js";
import { MAIL_ALL_LOCAL_AGENTS } from "./names.js";

/** The parts of an agent's address `name@swarm`. */
export interface AgentAddress {
  readonly name: string;
  /** Absent when the address names no swarm. */
  readonly swarm?: string;
}

/** Makes the address of an agent. */
export function createAgentAddress(address: string): MAILAddress {
  return { address_type: "agent", address };
}

/** Makes the address of a user. */
export function createUserAddress(id: string): MAILAddress {
  return { address_type: "user", address: id };
}

/** Makes the address of an admin. */
export function createAdminAddress(id: string): MAILAddress {
  return { address_type: "admin", address: id };
}

/** MAIL: Type `system`. The address of the system is the name of its swarm. */
export function createSystemAddress(swarm: string): MAILAddress {
  return { address_type: "system", address: swarm };
}

/** Splits at the first `@` and trims both parts, without validation: `a@b@c` is agent `a` of swarm `b@c`. */
export function parseAgentAddress(address: string): AgentAddress {
  const at = address.indexOf("@");
  if (at < 0) return { name: address.trim() };
  return { name: address.slice(0, at).trim(), swarm: address.slice(at + 1).trim() };
}

/** Writes an agent's address: `name`, or `name@swarm`. */
export function formatAgentAddress(name: string, swarm?: string): string {
  return swarm === undefined ? name : `${name}@${swarm}`;
}

/**
 * Returns the spelling for comparisons, without a qualifier that names the local swarm. MAIL: Local Routing treats both
 * spellings alike.
 */
export function normalizeAddress(address: string, localSwarm: string): string {
  const { name, swarm } = parseAgentAddress(address);
  return swarm === undefined || swarm === localSwarm ? name : `${name}@${swarm}`;
}

/** Whether mail for this agent leaves the swarm. */
export function isInterswarmAddress(address: string, localSwarm: string): boolean {
  const { swarm } = parseAgentAddress(address);
  return swarm !== undefined && swarm !== localSwarm;
}

/** Returns why this is not a valid agent name, or `undefined` if it is. */
export function checkAgentName(name: string): string | undefined {
  return checkName("agent", name);
}

/** Returns why this is not a valid swarm name, or `undefined` if it is. */
export function checkSwarmName(name: string): string | undefined {
  return checkName("swarm", name);
}

/**
 * `@` separates an agent from its swarm and `:` a role from its id, so a name with either would be ambiguous. `all`
 * stands for every agent.
 */
function checkName(kind: "agent" | "swarm", name: string): string | undefined {
  if (name === "") return `the name of ${article(kind)} must not be empty`;
  const shown = `${kind} name ${JSON.stringify(name)}`;
  if (name === MAIL_ALL_LOCAL_AGENTS) return `${shown} is reserved: it stands for every agent of a swarm`;
  if (name.includes("@")) return `${shown} must not contain "@": it separates an agent from its swarm`;
  if (name.includes(":")) return `${shown} must not contain ":": it separates a role from an id`;
  if (/\s/u.test(name)) return `${shown} must not contain white space`;
  if (/\p{Cc}/u.test(name)) return `${shown} must not contain control characters`;
  return undefined;
}

function article(kind: "agent" | "swarm"): string {
  return kind === "agent" ? "an agent" : "a swarm";
}

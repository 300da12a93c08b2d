/**
 * All operations of the agent's operator as a table of functions from data to data. The command line and the control
 * socket of a running server both use it.
 */
import { MailroomError } from "../../base/index.js";
import { AGENT_OPERATIONS } from "./agent.js";
import { MESSAGE_OPERATIONS } from "./messages.js";
import type { AdminOperation, AdminParts, AdminResult } from "./operation.js";
import { SWARM_OPERATIONS } from "./swarms.js";

const OPERATIONS = { ...SWARM_OPERATIONS, ...MESSAGE_OPERATIONS, ...AGENT_OPERATIONS };
export type AdminOperationName = keyof typeof OPERATIONS;

const table: ReadonlyMap<string, AdminOperation> = new Map(Object.entries(OPERATIONS));

/** @throws MailroomError when the operation fails */
export async function operate(parts: AdminParts, name: string, given: unknown): Promise<AdminResult> {
  const known = table.get(name);
  if (known === undefined) throw new MailroomError("invalid_request", `unknown operation '${name}'`);
  return known.run(parts, given);
}

export type { AdminParts, AdminResult } from "./operation.js";

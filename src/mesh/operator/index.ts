/**
 * Everything that the agent's operator can ask for, as data in and data out: the command line and the control socket
 * of a running server are two ways to the same table.
 */
import { MeshError } from "../errors.js";
import { AGENT_OPERATIONS } from "./agent.js";
import { MESSAGE_OPERATIONS } from "./messages.js";
import type { Operation, OperatorParts, Outcome } from "./operation.js";
import { SWARM_OPERATIONS } from "./swarms.js";

const OPERATIONS = { ...SWARM_OPERATIONS, ...MESSAGE_OPERATIONS, ...AGENT_OPERATIONS };
export type OperationName = keyof typeof OPERATIONS;

const table: ReadonlyMap<string, Operation> = new Map(Object.entries(OPERATIONS));

/** @throws MeshError when it cannot be done */
export async function operate(parts: OperatorParts, name: string, given: unknown): Promise<Outcome> {
  const known = table.get(name);
  if (known === undefined) throw new MeshError("invalid_request", `there is no operation '${name}'`);
  return known.run(parts, given);
}

export type { OperatorParts, Outcome } from "./operation.js";

/** Declares operations of the agent's operator and resolves the swarm that they concern. */

import type { z } from "zod";
import { isRecord, MailroomError, unknownField } from "../../base/index.js";
import type { MeshAgent } from "../agent.js";
import type { Swarm } from "../membership/types.js";
import type { MeshReads } from "../ports.js";

export interface AdminParts {
  readonly agent: MeshAgent;
  readonly reads: MeshReads;
  /** The data directory, which contains the key file. */
  readonly directory: string;
}

export type AdminResult = Readonly<Record<string, unknown>>;

export interface AdminOperation {
  readonly run: (parts: AdminParts, given: unknown) => Promise<AdminResult>;
}

/**
 * A mistyped argument must not count as absent: an invite for one member would admit any number.
 * @throws MailroomError `invalid_request` when the arguments do not match the schema, or one is unknown
 */
export function operation<Schema extends z.ZodObject>(
  schema: Schema,
  run: (parts: AdminParts, args: z.output<Schema>) => Promise<AdminResult> | AdminResult,
): AdminOperation {
  return {
    run: async (parts, given) => {
      const known = Object.keys(schema.shape);
      const [unknown] =
        Object.entries(isRecord(given) ? given : {}).find(
          ([name, value]) => value !== undefined && !known.includes(name),
        ) ?? [];
      if (unknown !== undefined) throw new MailroomError("invalid_request", unknownField(unknown, known));
      const parsed = schema.safeParse(given);
      if (parsed.success) return run(parts, parsed.data);
      const [first] = parsed.error.issues;
      const path = first?.path.join(".") ?? "";
      const message = first?.message ?? "the arguments are invalid";
      throw new MailroomError("invalid_request", path === "" ? message : `${path}: ${message}`);
    },
  };
}

/** Finds a swarm by id, alias or name. Without any of them, returns the only swarm. */
export function swarmNamed({ swarms }: MeshAgent, wanted: string | undefined): Swarm {
  const [only] = swarms;
  if (wanted === undefined) {
    if (only !== undefined && swarms.length === 1) return only;
    if (only === undefined)
      throw new MailroomError("swarm_not_found", "this agent is not a member of any swarm");
    throw new MailroomError(
      "ambiguous_swarm",
      `name one of the swarms: ${swarms.map(({ alias }) => alias).join(", ")}`,
    );
  }
  const exact = swarms.find(({ id, alias }) => id === wanted.toLowerCase() || alias === wanted);
  if (exact !== undefined) return exact;
  const [named, ...others] = swarms.filter(({ name }) => name === wanted);
  if (named === undefined) throw new MailroomError("swarm_not_found", `unknown swarm ${wanted}`);
  if (others.length > 0)
    throw new MailroomError("ambiguous_swarm", `several swarms are named ${wanted}: use the alias`);
  return named;
}

/** How an operation of the agent's operator is declared, and which swarm it is about. */
import type { z } from "zod";
import { MeshError } from "../errors.js";
import type { Swarm } from "../membership/types.js";
import type { MeshNode } from "../node.js";
import type { MeshReads } from "../queue.js";

export interface OperatorParts {
  readonly node: MeshNode;
  readonly reads: MeshReads;
  /** The data directory: where the key file is. */
  readonly directory: string;
}

export type Outcome = Readonly<Record<string, unknown>>;

export interface Operation {
  readonly run: (parts: OperatorParts, given: unknown) => Promise<Outcome>;
}

/** @throws MeshError `invalid_request` when what is given does not fit the schema. */
export function operation<Schema extends z.ZodType>(
  schema: Schema,
  run: (parts: OperatorParts, args: z.output<Schema>) => Promise<Outcome> | Outcome,
): Operation {
  return {
    run: async (parts, given) => {
      const parsed = schema.safeParse(given);
      if (parsed.success) return run(parts, parsed.data);
      const [first] = parsed.error.issues;
      throw new MeshError("invalid_request", `${first?.path.join(".") ?? ""}: ${first?.message ?? "wrong"}`);
    },
  };
}

/** By id, alias or name; without any of them, the only swarm there is. */
export function swarmNamed({ swarms }: MeshNode, wanted: string | undefined): Swarm {
  const [only] = swarms;
  if (wanted === undefined) {
    if (only !== undefined && swarms.length === 1) return only;
    if (only === undefined) throw new MeshError("swarm_not_found", "this agent is in no swarm yet");
    throw new MeshError("ambiguous_swarm", `say which swarm: ${swarms.map(({ alias }) => alias).join(", ")}`);
  }
  const exact = swarms.find(({ id, alias }) => id === wanted.toLowerCase() || alias === wanted);
  if (exact !== undefined) return exact;
  const [named, ...others] = swarms.filter(({ name }) => name === wanted);
  if (named === undefined) throw new MeshError("swarm_not_found", `there is no swarm ${wanted} here`);
  if (others.length > 0)
    throw new MeshError("ambiguous_swarm", `several swarms are called ${wanted}: use the alias`);
  return named;
}

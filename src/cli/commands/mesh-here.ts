/** An operation on the mesh while no server runs: the command is the agent for as long as it takes. */
import type { Settings } from "../../config/index.js";
import { MeshError, type OperationName, type Outcome, operate } from "../../mesh/index.js";
import { openStore } from "../../store/index.js";
import { CliError } from "../exit.js";
import { meshIdentity, openMeshNode } from "../server/mesh-node.js";
import { explained } from "./mesh-errors.js";
import { takenNames } from "./mesh-names.js";

/** Milliseconds that deliveries get before the command ends; what is left is sent by the next server or command. */
const PATIENCE = 10_000;

export interface Here {
  readonly settings: Settings;
  readonly data: string;
  readonly report: (line: string) => void;
}

/** @throws CliError when it cannot be done */
export async function carryOutHere(
  name: OperationName,
  given: object,
  { settings, data, report }: Here,
): Promise<Outcome> {
  const identity = meshIdentity(data);
  if (identity === undefined) {
    throw new CliError("not_initialised", `there is no agent of the mesh in ${data}`, {
      hint: "run 'mailroom mesh init' first, or name its directory with --data",
    });
  }
  const store = await openStore({ directory: data });
  try {
    const taken = await takenNames({ settings, store, directory: process.cwd(), report });
    const { node, http } = await openMeshNode(
      {
        settings,
        data,
        store,
        report: ({ message }) => report(message),
        isNameTaken: (name) => taken.has(name),
      },
      identity,
    );
    try {
      const outcome = await operate({ node, reads: store.mesh, directory: data }, name, given);
      await settled(node.quiet());
      return outcome;
    } finally {
      await node.close();
      await http.close();
    }
  } catch (error) {
    throw error instanceof MeshError ? explained(error.code, error.message) : error;
  } finally {
    await store.close();
  }
}

async function settled(quiet: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE);
  });
  await Promise.race([quiet, patience]);
  clearTimeout(timer);
}

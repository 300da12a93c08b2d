/** Runs a mesh operation while no server is running: the command opens the agent itself. */

import { MailroomError, systemClock } from "../../base/index.js";
import { systemIds } from "../../base/node.js";
import {
  type AdminOperationName,
  type AdminResult,
  meshIdentity,
  openMeshAgent,
  operate,
} from "../../mesh/index.js";
import type { Settings } from "../../server/index.js";
import { openStore } from "../../store/index.js";
import { reservedNames } from "./reserved-names.js";

/**
 * Milliseconds that deliveries have before the command ends. The next server or command sends the rest. Shorter than the
 * time for which a starting server waits for the data directory.
 */
const PATIENCE = 3_000;

export interface OfflineMesh {
  readonly settings: Settings;
  readonly data: string;
  readonly report: (line: string) => void;
}

/** @throws MailroomError when the operation fails */
export async function executeOffline(
  name: AdminOperationName,
  given: object,
  { settings, data, report }: OfflineMesh,
): Promise<AdminResult> {
  const identity = meshIdentity(data);
  if (identity === undefined) {
    throw new MailroomError("not_initialized", `no mesh agent in ${data}`, {
      details: { hint: "run 'mailroom mesh init' first, or give its directory with --data" },
    });
  }
  const store = await openStore({ directory: data });
  try {
    const taken = await reservedNames({ settings, store, directory: process.cwd(), report });
    const { agent, http } = await openMeshAgent(
      {
        settings: settings.mesh,
        directory: data,
        store,
        clock: systemClock,
        ids: systemIds,
        report: ({ message }) => report(message),
        isNameTaken: (name) => taken.has(name),
      },
      identity,
    );
    try {
      const outcome = await operate({ agent, reads: store.mesh, directory: data }, name, given);
      await settled(agent.quiet());
      return outcome;
    } finally {
      await agent.close();
      await http.close();
    }
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

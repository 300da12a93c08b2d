/** Other swarms, as the settings have it. */
import { join } from "node:path";
import type { Settings } from "../../config/index.js";
import { Federation, type FederationProblem } from "../../federation/index.js";
import { systemClock, systemIds } from "../../library/clock.js";
import type { FullStore } from "../../store/index.js";

export interface FederationParts {
  readonly settings: Settings;
  /** The data directory; nothing when everything is kept in memory, and then nothing is signed. */
  readonly data: string | undefined;
  readonly store: FullStore;
  readonly swarm: string;
  readonly report: (problem: FederationProblem) => void;
  /** Names that mean something else already. */
  readonly isNameTaken?: (name: string) => boolean;
}

/** Nothing where it is switched off. */
export async function openFederation(parts: FederationParts): Promise<Federation | undefined> {
  const { settings, data, store, swarm, report, isNameTaken } = parts;
  const { federation, server } = settings;
  if (!federation.enabled) return undefined;
  const { registry } = server.swarm;
  return Federation.open({
    store,
    clock: systemClock,
    ids: systemIds,
    swarm,
    report,
    env: process.env,
    settings: {
      allow: federation.allow,
      identities: federation.identities,
      deliveryTime: federation.deliveryTimeout,
      answerTime: federation.answerTimeout,
      attemptTime: federation.attemptTimeout,
      healthInterval: federation.healthInterval,
      failuresToInactive: federation.failuresToInactive,
      signatures: federation.signatures,
      discovery: federation.discovery,
      maxHops: federation.maxHops,
      requestsPerMinute: federation.requestsPerMinute,
    },
    ...(data !== undefined && { keyFile: join(data, "federation.key") }),
    ...(registry !== undefined && { registryFile: registry }),
    ...(server.publicUrl !== undefined && { publicUrl: server.publicUrl }),
    ...(federation.ca !== undefined && { tls: { extraCaFile: federation.ca } }),
    ...(isNameTaken !== undefined && { isNameTaken }),
  });
}

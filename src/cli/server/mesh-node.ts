/** Opening the agent of a data directory, as its settings say: for a server, and for commands when none runs. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "../../config/index.js";
import { systemClock, systemIds } from "../../library/clock.js";
import {
  DEFAULT_MESH_OPTIONS,
  DEFAULT_RATE_LIMITS,
  type KeptIdentity,
  type MeshNode,
  type MeshOptions,
  type MeshProblem,
  openMesh,
  readIdentity,
} from "../../mesh/index.js";
import { createGuard, createHttpClient, type HttpClient } from "../../net/index.js";
import type { FullStore } from "../../store/index.js";

type MeshSettings = Settings["mesh"];

export interface MeshParts {
  readonly settings: Settings;
  /** The data directory. */
  readonly data: string;
  readonly store: FullStore;
  readonly report: (problem: MeshProblem) => void;
  /** Names that mean something else already. */
  readonly isNameTaken?: (name: string) => boolean;
}

/** Nothing where `mesh init` was never run. */
export function meshIdentity(data: string): KeptIdentity | undefined {
  return existsSync(join(data, "mesh", "agent.json")) ? readIdentity(data) : undefined;
}

/** The node and its way out; the command line opens the same one when no server runs. */
export async function openMeshNode(
  parts: MeshParts,
  identity: KeptIdentity,
): Promise<{ readonly node: MeshNode; readonly http: HttpClient }> {
  const { settings, data, store, report, isNameTaken } = parts;
  const { mesh } = settings;
  const http = createHttpClient({
    clock: systemClock,
    guard: createGuard({ allow: [...mesh.allow, ...(identity.dev ? ["loopback"] : [])] }),
    ...tlsOf(mesh, data, identity),
  });
  try {
    const node = await openMesh({
      directory: data,
      store,
      http,
      clock: systemClock,
      ids: systemIds,
      report,
      options: meshOptions(mesh),
      ...(mesh.stateFile !== undefined && { stateFile: mesh.stateFile }),
      ...(isNameTaken !== undefined && { isNameTaken }),
    });
    return { node, http };
  } catch (error) {
    await http.close();
    throw error;
  }
}

function tlsOf({ ca }: MeshSettings, data: string, { dev }: KeptIdentity) {
  const devCa = join(data, "tls", "dev-ca.pem");
  const extraCaFile = ca ?? (dev && existsSync(devCa) ? devCa : undefined);
  return extraCaFile === undefined ? {} : { tls: { extraCaFile } };
}

function meshOptions(mesh: MeshSettings): Partial<MeshOptions> {
  const { limits, name, description } = mesh;
  const metadata = { ...(name !== "" && { name }), ...(description !== "" && { description }) };
  return {
    ...DEFAULT_MESH_OPTIONS,
    keyPolicy: mesh.keyPolicy,
    sealMessages: mesh.seal,
    sealPolicy: mesh.sealPolicy,
    checkJoiners: mesh.checkJoiners,
    awaitsTasks: mesh.bridge.enabled,
    rateLimits: {
      ...DEFAULT_RATE_LIMITS,
      sender: { count: limits.senderPerMinute, window: 60_000 },
      senderBytes: { count: limits.senderBytesPerMinute, window: 60_000 },
      swarm: { count: limits.swarmPerMinute, window: 60_000 },
      join: { count: limits.joinsPerHour, window: 3_600_000 },
    },
    ...(mesh.retentionDays > 0 && { retention: mesh.retentionDays * 86_400_000 }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

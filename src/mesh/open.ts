/** Opens the agent of a data directory with its settings: for a server, and for commands while no server runs. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createGuard, createHttpClient, type HttpClient } from "../net/index.js";
import type { MeshAgent } from "./agent.js";
import { meshOptions } from "./options.js";
import type { MeshSettings } from "./settings.js";
import { type OpenMeshInput, openMesh, readIdentity, type StoredIdentity } from "./setup.js";

export interface OpenAgentInput extends Omit<OpenMeshInput, "http" | "options" | "stateFile"> {
  readonly settings: MeshSettings;
}

/** Returns `undefined` if `mesh init` was never run in this directory. */
export function meshIdentity(directory: string): StoredIdentity | undefined {
  return existsSync(join(directory, "mesh", "agent.json")) ? readIdentity(directory) : undefined;
}

/** Returns the agent and the HTTP client that it uses. The caller closes both. */
export async function openMeshAgent(
  input: OpenAgentInput,
  identity: StoredIdentity,
): Promise<{ readonly agent: MeshAgent; readonly http: HttpClient }> {
  const { settings, ...rest } = input;
  const { directory, clock } = rest;
  const guard = createGuard({ allow: [...settings.allow, ...(identity.dev ? ["loopback"] : [])] });
  const http = createHttpClient({
    clock,
    guard,
    http2: true,
    ...tlsOf(settings, directory, identity),
  });
  try {
    const agent = await openMesh({
      ...rest,
      http,
      checkUrl: (url) => guard.checkUrl(url)?.message,
      options: meshOptions(settings),
      ...(settings.stateFile !== undefined && { stateFile: settings.stateFile }),
    });
    return { agent, http };
  } catch (error) {
    await http.close();
    throw error;
  }
}

function tlsOf({ ca }: MeshSettings, directory: string, { dev }: StoredIdentity) {
  const devCa = join(directory, "tls", "dev-ca.pem");
  const extraCaFile = ca ?? (dev && existsSync(devCa) ? devCa : undefined);
  return extraCaFile === undefined ? {} : { tls: { extraCaFile } };
}

/**
 * The files of a mesh agent in a data directory: `mesh/agent.json` (identity), `mesh/agent.key` (key),
 * `mesh/state.json` (copy of the state).
 */
import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { type Clock, type Ids, MailroomError, type Report } from "../base/index.js";
import { replaceFile } from "../base/node.js";
import type { HttpClient } from "../net/index.js";
import { MeshAgent } from "./agent.js";
import { checkAgentId } from "./identity/agent-id.js";
import { createKeyFile, formerKeys, nextKey, prepareNextKey, readKeyFile } from "./identity/key-file.js";
import type { KeyPair } from "./identity/keys.js";
import { inviteFiles } from "./invite/files.js";
import type { MeshIdentity } from "./membership/types.js";
import { checkEndpoint } from "./message/endpoint.js";
import { type MeshOptions, meshOptions } from "./options.js";
import type { MeshStore } from "./ports.js";

const IdentityFile = z.object({
  agent_id: z.string(),
  endpoint: z.string(),
  dev: z.boolean().default(false),
});

const paths = (directory: string) => ({
  identity: join(directory, "mesh", "agent.json"),
  key: join(directory, "mesh", "agent.key"),
  invites: join(directory, "mesh", "invites"),
  state: join(directory, "mesh", "state.json"),
});

export interface InitInput {
  readonly directory: string;
  readonly agentId: string;
  /** Including the path: `https://agent.example.com/swarm`. */
  readonly endpoint: string;
  /** Allows an endpoint with a loopback name or address (decision G4). */
  readonly dev?: boolean;
  /** Replaces an existing agent. Its key is kept beside the new one. */
  readonly force?: boolean;
}

export interface StoredIdentity extends MeshIdentity {
  /** For this machine only: loopback peers and the development CA are trusted. */
  readonly dev: boolean;
}

export interface InitializedIdentity extends StoredIdentity {
  readonly publicKey: string;
}

/** `mailroom mesh init`. @throws MailroomError when an agent exists, or its id or endpoint is invalid */
export function initMesh(input: InitInput): InitializedIdentity {
  const { directory, agentId, endpoint, dev = false, force = false } = input;
  const wrongId = checkAgentId(agentId);
  if (wrongId !== undefined) throw new MailroomError("invalid_identity", `the agent id ${wrongId}`);
  assertEndpoint(endpoint, dev);
  const { key } = paths(directory);
  const pair = force && existsSync(key) ? replaceKeyFile(key) : createKeyFile(key);
  writeIdentity(directory, { agentId, endpoint, dev });
  return { agentId, endpoint, dev, publicKey: pair.publicKey.text };
}

function replaceKeyFile(path: string): KeyPair {
  const { pair, install } = prepareNextKey(path);
  install();
  return pair;
}

/** ASP: Infrastructure Requirements. A public DNS name, neither an IP address nor this machine. */
function checkPublic(endpoint: string): string | undefined {
  const host = new URL(endpoint).hostname.replace(/^\[|\]$/gu, "");
  if (isIP(host) !== 0) return "must have a DNS name, not an IP address (unless --dev is given)";
  if (!host.includes(".") || host.endsWith(".localhost"))
    return "must have a public DNS name (unless --dev is given)";
  return undefined;
}

/** @throws MailroomError when `mesh init` was not run in this directory */
export function readIdentity(directory: string): StoredIdentity {
  let text: string;
  try {
    text = readFileSync(paths(directory).identity, "utf8");
  } catch (cause) {
    throw new MailroomError("not_initialized", `no mesh agent in ${directory}: run "mailroom mesh init"`, {
      cause,
    });
  }
  const { agent_id, endpoint, dev } = IdentityFile.parse(JSON.parse(text));
  return { agentId: agent_id, endpoint, dev };
}

export interface OpenMeshInput {
  readonly directory: string;
  readonly store: MeshStore;
  readonly http: HttpClient;
  /** See `MeshContextParts`. */
  readonly checkUrl?: (url: string) => string | undefined;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly report: Report;
  readonly options?: Partial<MeshOptions>;
  /** Replaces `mesh/state.json`, for example by the protocol's `~/.swarm/state.json` (decision G6). */
  readonly stateFile?: string;
  /** Names that other carriers own (registry, A2A). */
  readonly isNameTaken?: (name: string) => boolean;
}

/** Opens the agent of a data directory. The caller closes the store. */
export async function openMesh(input: OpenMeshInput): Promise<MeshAgent> {
  const { directory, options, stateFile, isNameTaken, ...parts } = input;
  const { key, invites, state } = paths(directory);
  const identity = readIdentity(directory);
  await finishRotation(key, identity.agentId, parts.store);
  return MeshAgent.open({
    ...parts,
    identity,
    pair: readKeyFile(key),
    formerPairs: formerKeys(key),
    options: { ...meshOptions(), ...options },
    inviteFiles: inviteFiles(invites),
    stateFile: stateFile ?? state,
    ...(isNameTaken !== undefined && { isNameTaken }),
  });
}

/** Completes or discards a key rotation that a crash interrupted: the tables record whether it was announced. */
async function finishRotation(key: string, agentId: string, { mesh }: MeshStore): Promise<void> {
  const next = nextKey(key);
  if (next === undefined) return;
  const announced = (await mesh.view()).some(
    (write) =>
      write.kind === "mesh.member.put" &&
      write.member.agentId === agentId &&
      write.member.publicKey === next.pair.publicKey.text,
  );
  if (announced) next.install();
  else next.forget();
}

/**
 * `mailroom mesh rotate-key`: creates a new key file and announces it with the old key. The old file is kept beside
 * it.
 */
export async function rotateKeyFile(
  directory: string,
  agent: MeshAgent,
): Promise<{ readonly publicKey: string; readonly revokedInvites: number }> {
  const { key } = paths(directory);
  // Installs an earlier key that was announced but not installed, because there is no other copy of it.
  const announced = nextKey(key);
  if (announced?.pair.publicKey.text === agent.context.pair.publicKey.text) announced.install();
  const next = prepareNextKey(key);
  try {
    const { revokedInvites } = await agent.rotateKey(next);
    return { publicKey: next.pair.publicKey.text, revokedInvites };
  } catch (error) {
    if (agent.context.pair !== next.pair) next.forget();
    throw error;
  }
}

/** `mailroom mesh endpoint`: stores the new endpoint and announces it. @throws MailroomError when it is not valid */
export async function changeEndpoint(directory: string, agent: MeshAgent, endpoint: string): Promise<void> {
  const { agentId, dev } = readIdentity(directory);
  assertEndpoint(endpoint, dev);
  await agent.changeEndpoint(endpoint, () => writeIdentity(directory, { agentId, endpoint, dev }));
}

function writeIdentity(directory: string, { agentId, endpoint, dev }: StoredIdentity): void {
  const text = JSON.stringify({ agent_id: agentId, endpoint, ...(dev && { dev }) }, null, 2);
  replaceFile(paths(directory).identity, `${text}\n`);
}

function assertEndpoint(endpoint: string, dev: boolean): void {
  const wrong = checkEndpoint(endpoint) ?? (dev ? undefined : checkPublic(endpoint));
  if (wrong !== undefined) throw new MailroomError("invalid_identity", `the endpoint ${wrong}`);
}

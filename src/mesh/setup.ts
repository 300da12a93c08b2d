/** A mesh agent in a data directory: `mesh/agent.json` (who), `mesh/agent.key` (the key), `mesh/state.json` (a copy). */
import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import type { Clock, Ids } from "../engine/ports.js";
import { replaceFile } from "../files/durable.js";
import type { HttpClient } from "../net/index.js";
import type { MeshStore, Problem } from "./core.js";
import { MeshError } from "./errors.js";
import { checkAgentId } from "./identity/agent-id.js";
import { createKeyFile, formerKeys, nextKey, prepareNextKey, readKeyFile } from "./identity/key-file.js";
import type { KeyPair } from "./identity/keys.js";
import { inviteFiles } from "./invite/files.js";
import type { MeshIdentity } from "./membership/types.js";
import { checkEndpoint } from "./message/endpoint.js";
import { MeshNode } from "./node.js";
import { DEFAULT_MESH_OPTIONS, type MeshOptions } from "./options.js";

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
  /** With its path: `https://agent.example.com/swarm`. */
  readonly endpoint: string;
  /** Lets an endpoint be a loopback name or address (decisions G4). */
  readonly dev?: boolean;
  /** In the place of an agent that is there already. Its key is kept beside the new one. */
  readonly force?: boolean;
}

export interface KeptIdentity extends MeshIdentity {
  /** Made for this machine only: loopback peers and the development CA are trusted. */
  readonly dev: boolean;
}

export interface Initialised extends KeptIdentity {
  readonly publicKey: string;
}

/** `mailroom mesh init`. @throws MeshError when there is an agent already, or when its id or endpoint cannot be. */
export function initMesh(input: InitInput): Initialised {
  const { directory, agentId, endpoint, dev = false, force = false } = input;
  const wrongId = checkAgentId(agentId);
  if (wrongId !== undefined) throw new MeshError("invalid_identity", `the agent id ${wrongId}`);
  const wrongEndpoint = checkEndpoint(endpoint) ?? (dev ? undefined : checkPublic(endpoint));
  if (wrongEndpoint !== undefined) throw new MeshError("invalid_identity", `the endpoint ${wrongEndpoint}`);
  const { key, identity } = paths(directory);
  const pair = force && existsSync(key) ? replaceKeyFile(key) : createKeyFile(key);
  replaceFile(identity, `${JSON.stringify({ agent_id: agentId, endpoint, ...(dev && { dev }) }, null, 2)}\n`);
  return { agentId, endpoint, dev, publicKey: pair.publicKey.text };
}

function replaceKeyFile(path: string): KeyPair {
  const { pair, install } = prepareNextKey(path);
  install();
  return pair;
}

/** ASP: Infrastructure Requirements: a domain, not an address, and not this machine. */
function checkPublic(endpoint: string): string | undefined {
  const host = new URL(endpoint).hostname.replace(/^\[|\]$/gu, "");
  if (isIP(host) !== 0) return "must have a DNS name, not an address (--dev allows it)";
  if (!host.includes(".") || host.endsWith(".localhost"))
    return "must have a public DNS name (--dev allows others)";
  return undefined;
}

/** @throws MeshError when `mesh init` was not run here. */
export function readIdentity(directory: string): KeptIdentity {
  let text: string;
  try {
    text = readFileSync(paths(directory).identity, "utf8");
  } catch (cause) {
    throw new MeshError(
      "not_initialised",
      `there is no mesh agent in ${directory}: run "mailroom mesh init"`,
      { cause },
    );
  }
  const { agent_id, endpoint, dev } = IdentityFile.parse(JSON.parse(text));
  return { agentId: agent_id, endpoint, dev };
}

export interface OpenMeshInput {
  readonly directory: string;
  readonly store: MeshStore;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly report: (problem: Problem) => void;
  readonly options?: Partial<MeshOptions>;
  /** In place of `mesh/state.json`: the seed's `~/.swarm/state.json`, for instance. */
  readonly stateFile?: string;
  /** Names that other carriers own (registry, A2A). */
  readonly isNameTaken?: (name: string) => boolean;
}

/** Opens the agent of a data directory. The store stays its owner's to close. */
export async function openMesh(input: OpenMeshInput): Promise<MeshNode> {
  const { directory, options, stateFile, isNameTaken, ...parts } = input;
  const { key, invites, state } = paths(directory);
  const identity = readIdentity(directory);
  await finishRotation(key, identity.agentId, parts.store);
  return MeshNode.open({
    ...parts,
    identity,
    pair: readKeyFile(key),
    formerPairs: formerKeys(key),
    options: { ...DEFAULT_MESH_OPTIONS, ...options },
    inviteFiles: inviteFiles(invites),
    stateFile: stateFile ?? state,
    ...(isNameTaken !== undefined && { isNameTaken }),
  });
}

/** A crash in the middle of a change of keys: the tables say whether it was announced, and so counts. */
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

/** `mailroom mesh rotate-key`: a new key file, announced with the old key. The old file is kept beside it. */
export async function rotateKeyFile(directory: string, node: MeshNode): Promise<string> {
  const { key } = paths(directory);
  // An earlier change that was announced, but could not be written, comes first: there is no other copy of its key.
  const announced = nextKey(key);
  if (announced?.pair.publicKey.text === node.core.pair.publicKey.text) announced.install();
  const next = prepareNextKey(key);
  try {
    await node.rotateKey(next);
  } catch (error) {
    if (node.core.pair !== next.pair) next.forget();
    throw error;
  }
  return next.pair.publicKey.text;
}

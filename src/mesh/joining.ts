/** Joining, at the agent who asks; and asking again, who is in. */
import { NetError } from "../net/index.js";
import type { MeshCore } from "./core.js";
import { MeshError } from "./errors.js";
import { checkAgentId } from "./identity/agent-id.js";
import { parsePublicKey } from "./identity/keys.js";
import type { InviteFiles } from "./invite/files.js";
import { checkInviteTime, type ReadInvite } from "./invite/token.js";
import { parseInviteUrl } from "./invite/url.js";
import { joinFields } from "./membership/join-fields.js";
import { decideSync } from "./membership/sync.js";
import type { Member, Swarm, SwarmRecord } from "./membership/types.js";
import { cutTo } from "./message/check.js";
import { checkEndpoint, sameEndpoint } from "./message/endpoint.js";
import { isRecord } from "./message/extras.js";
import { ASP_VERSION, LIMITS } from "./message/types.js";
import { createPeers, type PeerAnswer } from "./peers.js";
import { signFields } from "./signature.js";
import { formatTime, parseTime } from "./time.js";
import type { ViewWrite } from "./writes.js";

export interface JoinedSwarm {
  readonly swarmId: string;
  /** Whether this agent was in before, as far as it knew. */
  readonly wasMember: boolean;
}

export interface JoinParts {
  /** @throws MeshError when the operator's choice cannot be used. */
  readonly chooseAlias: (swarmId: string, name: string) => string;
  readonly inviteFiles: InviteFiles;
}

/**
 * Joins by an invite URL. What the master answers is checked against the invite, and the invite, now that the
 * master's key is known, against its signature; if anything does not fit, nothing is kept.
 * @throws MeshError
 */
export async function joinSwarm(
  core: MeshCore,
  inviteUrl: string,
  { chooseAlias, inviteFiles }: JoinParts,
): Promise<JoinedSwarm> {
  const { token, invite } = parseInviteUrl(inviteUrl);
  const { claims } = invite;
  const expired = checkInviteTime(claims, core.now);
  if (expired !== undefined) throw new MeshError("invalid_invite", expired.message);
  // An alias that cannot be used is refused before the master admits anybody. The name is not known yet.
  chooseAlias(claims.swarmId, "");
  assertSameMaster(core, invite);
  core.joining.add(claims.swarmId);
  const before = core.view.changesOf(claims.swarmId);
  try {
    const answer = await askToJoin(core, claims.endpoint, claims.master, claims.swarmId, token);
    const list = readJoinAnswer(core, answer, claims.swarmId);
    const master = list.members.find(({ agentId }) => agentId === claims.master);
    const masterKey = master === undefined ? undefined : core.keyOf(master.publicKey);
    if (master === undefined || masterKey === undefined || !sameEndpoint(master.endpoint, claims.endpoint)) {
      throw new MeshError("join_refused", "the answer does not name the invite's master: nothing was kept");
    }
    const signer =
      claims.issuer === undefined ? master : list.members.find((one) => one.agentId === claims.issuer);
    const signerKey = signer === undefined ? undefined : core.keyOf(signer.publicKey);
    if (signerKey === undefined || !invite.signedBy(signerKey)) {
      throw new MeshError("join_refused", "the invite was not signed by its master: nothing was kept");
    }
    const ours = list.members.find(({ agentId }) => agentId === core.id);
    if (ours?.publicKey !== core.pair.publicKey.text) {
      throw new MeshError(
        "join_refused",
        "the answer does not list this agent with its key: nothing was kept",
      );
    }
    return await core.exclusive(async () => {
      const known = assertSameMaster(core, invite);
      const swarm: SwarmRecord = {
        id: claims.swarmId,
        name: list.name,
        master: claims.master,
        joinedAt: known?.joinedAt ?? core.now,
        settings: list.settings ?? known?.settings ?? { allowMemberInvite: false, requireApproval: false },
        alias: chooseAlias(claims.swarmId, list.name),
      };
      // First, because without it nobody can be asked who is in.
      inviteFiles.keep(swarm.id, token);
      const learnt =
        known === undefined
          ? list.members.map(memberPut(swarm.id))
          : // What has changed since the master was asked is newer than its answer.
            core.view.changesOf(swarm.id) === before
            ? decideSync(known, core.id, list).members
            : [];
      await core.commit([{ kind: "mesh.swarm.put", swarm }, ...learnt], swarm.id);
      return { swarmId: swarm.id, wasMember: known?.members.has(core.id) === true };
    });
  } finally {
    core.joining.delete(claims.swarmId);
  }
}

/**
 * Anybody can sign an invite that names a swarm which we are in, and call himself its master. Who leads a swarm, from
 * where and with which key, is not to be learnt from an invite once it is known; nor is our word, signed, sent elsewhere.
 */
function assertSameMaster(core: MeshCore, { claims, signedBy }: ReadInvite): Swarm | undefined {
  const known = core.view.swarms.get(claims.swarmId);
  if (known === undefined) return undefined;
  const master = known.members.get(known.master);
  const signer = known.members.get(claims.issuer ?? claims.master);
  const key = signer === undefined ? undefined : core.keyOf(signer.publicKey);
  const isTheirs =
    claims.master === known.master &&
    master !== undefined &&
    sameEndpoint(master.endpoint, claims.endpoint) &&
    key !== undefined &&
    signedBy(key);
  if (isTheirs) return known;
  throw new MeshError(
    "join_refused",
    `this agent is in ${known.name} already, and the invite is not of its master ${known.master} as known here: to join by it all the same, leave first`,
  );
}

function memberPut(swarmId: string): (member: Member) => ViewWrite {
  return (member) => ({ kind: "mesh.member.put", swarmId, member });
}

interface Synced {
  /** Members whose key is another here than at the master. */
  readonly conflicts: readonly string[];
  /** Whether the master keeps what it has to announce until it is heard: it tells the swarm's settings as Mailrooms do. */
  readonly remembers: boolean;
}

/** Brings a swarm's member list up to what its master says. Works with every master: it is the same join again. */
export async function syncSwarm(core: MeshCore, swarmId: string, token: string): Promise<Synced> {
  for (let tries = 1; ; tries += 1) {
    const synced = await syncOnce(core, swarmId, token);
    if (synced !== undefined) return synced;
    if (tries === MOST_TRIES) throw new MeshError("overloaded", "the swarm changes too fast to be asked for");
  }
}

const MOST_TRIES = 5;

/** Nothing when something has changed since the master was asked: its answer may be the older one. */
async function syncOnce(core: MeshCore, swarmId: string, token: string): Promise<Synced | undefined> {
  const swarm = core.view.swarms.get(swarmId);
  const master = swarm?.members.get(swarm.master);
  if (master === undefined || master.agentId === core.id) return { conflicts: [], remembers: true };
  const before = core.view.changesOf(swarmId);
  const answer = await askToJoin(core, master.endpoint, master.agentId, swarmId, token, { asks_only: true });
  const list = readJoinAnswer(core, answer, swarmId);
  const remembers = list.settings !== undefined;
  return core.exclusive(async () => {
    const current = core.view.swarms.get(swarmId);
    if (current === undefined) return { conflicts: [], remembers };
    if (core.view.changesOf(swarmId) !== before) return undefined;
    const { members, record, conflicts } = decideSync(current, core.id, list);
    if (members.length + record.length > 0) await core.commit([...record, ...members], swarmId);
    for (const agentId of conflicts) {
      core.parts.report({
        code: "mesh_key_conflict",
        message: `the master of ${current.name} names another key of ${agentId} than the one known here`,
      });
    }
    return { conflicts, remembers };
  });
}

async function askToJoin(
  core: MeshCore,
  endpoint: string,
  master: string,
  swarmId: string,
  token: string,
  rest: { readonly asks_only?: true } = {},
): Promise<PeerAnswer> {
  const message_id = core.parts.ids.uuid();
  const timestamp = formatTime(core.now);
  const { agentId, endpoint: ownEndpoint } = core.parts.identity;
  const body = {
    type: "system",
    action: "join_request",
    invite_token: token,
    sender: { agent_id: agentId, endpoint: ownEndpoint, public_key: core.pair.publicKey.text },
    protocol_version: ASP_VERSION,
    message_id,
    timestamp,
    signature: signFields(joinFields(message_id, timestamp, swarmId, master, token), core.pair),
    // Some would let us in again where we have been kicked or have left; those who understand this do not.
    ...rest,
  };
  try {
    const answer = await createPeers(core.parts.http, core.id, () => core.now).post(endpoint, "join", body);
    if (answer.status === 200) return answer;
    if (answer.status === 202) {
      throw new MeshError(
        "pending",
        "the master has to approve the request: ask again with the same invite later",
      );
    }
    throw new MeshError("join_refused", `the master refused: ${answer.complaint}`, {
      details: { status: answer.status },
    });
  } catch (error) {
    if (!(error instanceof NetError)) throw error;
    throw new MeshError("peer_unreachable", `the master cannot be reached: ${error.message}`, {
      cause: error,
    });
  }
}

interface ReadList {
  readonly name: string;
  readonly members: readonly Member[];
  readonly settings?: SwarmRecord["settings"];
}

/** @throws MeshError when the answer of the master makes no sense. */
function readJoinAnswer(core: MeshCore, { value }: PeerAnswer, swarmId: string): ReadList {
  const nonsense = (why: string): MeshError => new MeshError("join_refused", `the master's answer ${why}`);
  if (!isRecord(value)) throw nonsense("is not a JSON object");
  if (typeof value.swarm_id === "string" && value.swarm_id.toLowerCase() !== swarmId) {
    throw nonsense("is about another swarm");
  }
  const name = [value.swarm_name, value.name].find((one) => typeof one === "string" && one !== "");
  if (!Array.isArray(value.members) || value.members.length === 0 || value.members.length > 10_000) {
    throw nonsense("lists no members");
  }
  const members = value.members.map((one: unknown): Member => {
    if (!isRecord(one) || typeof one.agent_id !== "string" || typeof one.endpoint !== "string") {
      throw nonsense("lists a member without agent_id or endpoint");
    }
    const key = parsePublicKey(typeof one.public_key === "string" ? one.public_key : "");
    if (
      checkAgentId(one.agent_id) !== undefined ||
      checkEndpoint(one.endpoint) !== undefined ||
      "reason" in key
    ) {
      throw nonsense("lists a member with an invalid agent_id, endpoint or key");
    }
    const since = typeof one.joined_at === "string" ? parseTime(one.joined_at) : undefined;
    // Some masters do not say since when: then it is since we have heard of it.
    const known = core.view.swarms.get(swarmId)?.members.get(one.agent_id);
    const joinedAt = since ?? known?.joinedAt ?? core.now;
    return { agentId: one.agent_id, endpoint: one.endpoint, publicKey: key.key.text, joinedAt };
  });
  const { settings } = value;
  return {
    name: typeof name === "string" ? cutTo(name, LIMITS.nameCharacters) : swarmId,
    members,
    ...(isRecord(settings) && {
      settings: {
        allowMemberInvite: settings.allow_member_invite === true,
        requireApproval: settings.require_approval === true,
      },
    }),
  };
}

/** The joining side of a join, and synchronization of the member list. */

import { hasCode, isRecord, MailroomError } from "../../base/index.js";
import { NetError } from "../../net/index.js";
import type { MeshContext } from "../context.js";
import { checkAgentId } from "../identity/agent-id.js";
import { parsePublicKey } from "../identity/keys.js";
import type { InviteFiles } from "../invite/files.js";
import { checkInviteTime, type ReadInvite } from "../invite/token.js";
import { parseInviteUrl } from "../invite/url.js";
import { followHandovers, listedHandovers } from "../membership/handover.js";
import { joinFields } from "../membership/join.js";
import { toSwarmRecord } from "../membership/operations.js";
import { decideSync, memberWrites } from "../membership/sync.js";
import { readProofs } from "../membership/system-content.js";
import type { HandoverProof, Member, Swarm, SwarmRecord } from "../membership/types.js";
import { cutTo, toOneLine } from "../message/check.js";
import { checkEndpoint, sameEndpoint } from "../message/endpoint.js";
import { ASP_VERSION, LIMITS } from "../message/types.js";
import { createPeers, type PeerResponse } from "../send/peers.js";
import { signFields } from "../signature.js";
import { formatTime, parseTime } from "../time.js";
import type { ViewWrite } from "../writes.js";

export interface JoinedSwarm {
  readonly swarmId: string;
  /** Whether this agent was already a member according to its own state. */
  readonly wasMember: boolean;
}

export interface JoinParts {
  /** @throws MailroomError when the alias is invalid or taken */
  readonly chooseAlias: (swarmId: string, name: string) => string;
  readonly inviteFiles: InviteFiles;
}

/**
 * Joins a swarm with an invite URL. The master's response is checked against the invite, and the invite's signature
 * against the master's key from the response. If a check fails, nothing is stored.
 * @throws MailroomError
 */
export async function joinSwarm(
  context: MeshContext,
  inviteUrl: string,
  { chooseAlias, inviteFiles }: JoinParts,
): Promise<JoinedSwarm> {
  const { token, invite } = parseInviteUrl(inviteUrl);
  const { claims } = invite;
  const expired = checkInviteTime(claims, context.now);
  if (expired !== undefined) throw new MailroomError("invalid_invite", expired.message);
  // Refuses an unusable alias before the master admits this agent. The swarm's name is not known yet.
  chooseAlias(claims.swarmId, "");
  assertSameMaster(context, invite);
  context.joining.add(claims.swarmId);
  const before = context.view.changesOf(claims.swarmId);
  try {
    const answer = await askToJoin(context, claims.endpoint, claims.master, claims.swarmId, token);
    const list = readJoinAnswer(context, answer, claims.swarmId);
    const master = list.members.find(({ agentId }) => agentId === claims.master);
    const masterKey = master === undefined ? undefined : context.keyOf(master.publicKey);
    if (master === undefined || masterKey === undefined || !sameEndpoint(master.endpoint, claims.endpoint)) {
      throw new MailroomError(
        "join_refused",
        "the response does not name the master of the invite: nothing was stored",
      );
    }
    const signer =
      claims.issuer === undefined ? master : list.members.find((one) => one.agentId === claims.issuer);
    const signerKey = signer === undefined ? undefined : context.keyOf(signer.publicKey);
    if (signerKey === undefined || !invite.signedBy(signerKey)) {
      throw new MailroomError("join_refused", "the invite was not signed by its master: nothing was stored");
    }
    const ours = list.members.find(({ agentId }) => agentId === context.id);
    if (ours?.publicKey !== context.pair.publicKey.text) {
      throw new MailroomError(
        "join_refused",
        "the response does not list this agent with its key: nothing was stored",
      );
    }
    return await context.exclusive(async () => {
      const known = assertSameMaster(context, invite);
      const past = {
        id: claims.swarmId,
        master: claims.master,
        ...(known?.handovers && { handovers: known.handovers }),
      };
      const handovers = listedHandovers(past, list.handovers ?? [], context.now) ?? known?.handovers;
      const swarm: SwarmRecord = {
        id: claims.swarmId,
        name: list.name,
        master: claims.master,
        joinedAt: known?.joinedAt ?? context.now,
        settings: list.settings ?? known?.settings ?? { allowMemberInvite: false, requireApproval: false },
        alias: chooseAlias(claims.swarmId, list.name),
        ...(handovers !== undefined && { handovers }),
      };
      // Stored first, because without it the master cannot be asked for the member list.
      inviteFiles.keep(swarm.id, token);
      inviteFiles.forgetPending(swarm.id);
      const learnt =
        known === undefined
          ? list.members.map(memberPut(swarm.id))
          : // Changes since the request are newer than the response.
            context.view.changesOf(swarm.id) === before
            ? decideSync(known, context.id, list, context.now).members
            : [];
      await context.commit([{ kind: "mesh.swarm.put", swarm }, ...learnt], swarm.id);
      return { swarmId: swarm.id, wasMember: known?.members.has(context.id) === true };
    });
  } catch (error) {
    if (hasCode(error, "pending")) inviteFiles.keepPending(claims.swarmId, inviteUrl);
    throw error;
  } finally {
    context.joining.delete(claims.swarmId);
  }
}

/**
 * Anyone can sign an invite that names a swarm which this agent is in, and claim to be its master. The master of a
 * known swarm, its endpoint and its key are therefore never taken from an invite, and no signed request is sent
 * elsewhere.
 */
function assertSameMaster(context: MeshContext, { claims, signedBy }: ReadInvite): Swarm | undefined {
  const known = context.view.swarms.get(claims.swarmId);
  if (known === undefined) return undefined;
  const master = known.members.get(known.master);
  const signer = known.members.get(claims.issuer ?? claims.master);
  const key = signer === undefined ? undefined : context.keyOf(signer.publicKey);
  const isTheirs =
    claims.master === known.master &&
    master !== undefined &&
    sameEndpoint(master.endpoint, claims.endpoint) &&
    key !== undefined &&
    signedBy(key);
  if (isTheirs) return known;
  throw new MailroomError(
    "join_refused",
    `this agent is already a member of ${known.name}, and the invite does not come from its known master ${known.master}: leave the swarm first to join with this invite`,
  );
}

function memberPut(swarmId: string): (member: Member) => ViewWrite {
  return (member) => ({ kind: "mesh.member.put", swarmId, member });
}

interface Synced {
  /** Members whose key differs here and at the master. */
  readonly conflicts: readonly string[];
  /**
   * Whether the master stores announcements until they are delivered. It does if its response contains the swarm's
   * settings, as Mailroom's does.
   */
  readonly remembers: boolean;
}

/** Updates a swarm's member list from its master. Works with every master, because it repeats the join request. */
export async function syncSwarm(context: MeshContext, swarmId: string, token: string): Promise<Synced> {
  for (let tries = 1; ; tries += 1) {
    const synced = await syncOnce(context, swarmId, token);
    if (synced !== undefined) return synced;
    if (tries === MOST_TRIES)
      throw new MailroomError("overloaded", "the swarm changes too fast to be synchronized: try again");
  }
}

const MOST_TRIES = 5;

/** Returns `undefined` if something changed since the request, because the response may be older than the change. */
async function syncOnce(context: MeshContext, swarmId: string, token: string): Promise<Synced | undefined> {
  const swarm = context.view.swarms.get(swarmId);
  const master = swarm?.members.get(swarm.master);
  if (master === undefined || master.agentId === context.id) return { conflicts: [], remembers: true };
  const before = context.view.changesOf(swarmId);
  let answer: PeerResponse;
  try {
    answer = await askToJoin(context, master.endpoint, master.agentId, swarmId, token, { asks_only: true });
  } catch (error) {
    // The agent that was the master shows who is.
    if (hasCode(error, "join_refused") && (await followMaster(context, swarmId, error.details.handovers))) {
      return undefined;
    }
    throw error;
  }
  const list = readJoinAnswer(context, answer, swarmId);
  const remembers = list.settings !== undefined;
  return context.exclusive(async () => {
    const current = context.view.swarms.get(swarmId);
    if (current === undefined) return { conflicts: [], remembers };
    if (context.view.changesOf(swarmId) !== before) return undefined;
    const { members, record, conflicts } = decideSync(current, context.id, list, context.now);
    if (members.length + record.length > 0) await context.commit([...record, ...members], swarmId);
    for (const agentId of conflicts) {
      context.parts.report({
        code: "mesh_key_conflict",
        message: `the master of ${current.name} has another key for ${agentId} than this agent`,
      });
    }
    return { conflicts, remembers };
  });
}

function handoversIn(value: unknown): unknown {
  const error = isRecord(value) ? value.error : undefined;
  const details = isRecord(error) ? error.details : undefined;
  return isRecord(details) ? details.handovers : undefined;
}

/** Returns whether the proofs lead to another master. */
function followMaster(context: MeshContext, swarmId: string, value: unknown): Promise<boolean> {
  return context.exclusive(async () => {
    const swarm = context.view.swarms.get(swarmId);
    const followed = swarm && followHandovers(swarm, readProofs(value) ?? [], context.now);
    if (swarm === undefined || followed === undefined || followed.master === swarm.master) return false;
    const { master, handovers, introduced } = followed;
    const record: ViewWrite = {
      kind: "mesh.swarm.put",
      swarm: { ...toSwarmRecord(swarm), master, handovers },
    };
    await context.commit([record, ...introduced.flatMap((one) => memberWrites(swarm, one))], swarmId);
    await context.recordEvent(swarmId, { action: "master_changed", agentId: master });
    return true;
  });
}

async function askToJoin(
  context: MeshContext,
  endpoint: string,
  master: string,
  swarmId: string,
  token: string,
  rest: { readonly asks_only?: true } = {},
): Promise<PeerResponse> {
  const message_id = context.parts.ids.uuid();
  const timestamp = formatTime(context.now);
  const { agentId, endpoint: ownEndpoint } = context.identity;
  const body = {
    type: "system",
    action: "join_request",
    invite_token: token,
    sender: { agent_id: agentId, endpoint: ownEndpoint, public_key: context.pair.publicKey.text },
    protocol_version: ASP_VERSION,
    message_id,
    timestamp,
    signature: signFields(joinFields(message_id, timestamp, swarmId, master, token), context.pair),
    // Other implementations would admit this agent again after a kick or a leave; those that support this field do
    // not.
    ...rest,
  };
  try {
    const answer = await createPeers(context.parts.http, context.id, () => context.now).post(
      endpoint,
      "join",
      body,
    );
    if (answer.status === 200) return answer;
    if (answer.status === 202) {
      throw new MailroomError(
        "pending",
        "the master must approve the request: this agent joins as soon as it does",
      );
    }
    throw new MailroomError("join_refused", `the master refused the request: ${answer.reason}`, {
      details: { status: answer.status, handovers: handoversIn(answer.value) },
    });
  } catch (error) {
    if (!(error instanceof NetError)) throw error;
    throw new MailroomError("peer_unreachable", `the master is unreachable: ${error.message}`, {
      cause: error,
    });
  }
}

interface ReadList {
  readonly name: string;
  readonly members: readonly Member[];
  readonly settings?: SwarmRecord["settings"];
  readonly handovers?: readonly HandoverProof[];
}

/** @throws MailroomError when the master's response is invalid */
function readJoinAnswer(context: MeshContext, { value }: PeerResponse, swarmId: string): ReadList {
  const nonsense = (why: string): MailroomError =>
    new MailroomError("join_refused", `the master's response ${why}`);
  if (!isRecord(value)) throw nonsense("is not a JSON object");
  if (typeof value.swarm_id === "string" && value.swarm_id.toLowerCase() !== swarmId) {
    throw nonsense("concerns another swarm");
  }
  const name = [value.swarm_name, value.name].find((one) => typeof one === "string" && one !== "");
  if (!Array.isArray(value.members) || value.members.length === 0) throw nonsense("lists no members");
  if (value.members.length > LIMITS.members) throw nonsense(`lists more than ${LIMITS.members} members`);
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
    // Some masters omit the time; use the time at which this agent learned of the member.
    const known = context.view.swarms.get(swarmId)?.members.get(one.agent_id);
    const joinedAt = since ?? known?.joinedAt ?? context.now;
    return { agentId: one.agent_id, endpoint: one.endpoint, publicKey: key.key.text, joinedAt };
  });
  const { settings } = value;
  const handovers = readProofs(value.handovers);
  return {
    ...(handovers !== undefined && { handovers }),
    name: typeof name === "string" ? cutTo(toOneLine(name), LIMITS.nameCharacters) : swarmId,
    members,
    ...(isRecord(settings) && {
      settings: {
        allowMemberInvite: settings.allow_member_invite === true,
        requireApproval: settings.require_approval === true,
      },
    }),
  };
}

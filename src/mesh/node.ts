/** One agent of the mesh: everything that its operator can do, and the doors for its peers. */
import { createHash } from "node:crypto";
import { RowConflictError, type RowWrite } from "../engine/ports.js";
import { purgeFinished } from "../outbox/index.js";
import { checkAlias, suggestAlias } from "./alias.js";
import { type CoreParts, MESH_QUEUE, MeshCore, type Outgoing } from "./core.js";
import { createDelivery } from "./delivery.js";
import { MeshError } from "./errors.js";
import { replaceFile } from "./files.js";
import { BROADCAST } from "./identity/agent-id.js";
import type { KeyPair } from "./identity/keys.js";
import type { InviteFiles } from "./invite/files.js";
import { readInvite, signInvite } from "./invite/token.js";
import { formatInviteUrl } from "./invite/url.js";
import { type JoinReception, joinSwarm, receiveJoin, syncSwarm } from "./joins.js";
import { KeyRefresh } from "./key-refresh.js";
import { RateLimiter, type Standing } from "./limits.js";
import {
  approveJoin,
  createSwarm,
  dissolveSwarm,
  kickMember,
  leaveSwarm,
  masteredSwarm,
  offerTransfer,
  othersOf,
  recipientsOf,
  rejectJoin,
  swarmOf,
} from "./membership/operations.js";
import { rotationText } from "./membership/rotation.js";
import { writeSystemContent } from "./membership/system-content.js";
import type { Invite, Mute, PendingJoin, Swarm, SwarmSettings } from "./membership/types.js";
import { checkDraft } from "./message/build.js";
import { isUuid } from "./message/check.js";
import type { MessageExtras, MessageType } from "./message/types.js";
import type { QueuedMessage } from "./queue.js";
import { type IncomingHeaders, type Reception, receiveMessage } from "./receive.js";
import { readStateFile, writeStateFile } from "./state/file.js";
import { decideImport, type ImportDecision } from "./state/import.js";
import type { MeshRowWrite } from "./writes.js";

export interface NodeParts extends CoreParts {
  readonly inviteFiles: InviteFiles;
  /** Rewritten after each change (decisions G6). Absent: no such file. */
  readonly stateFile?: string;
  /** Names that other carriers own. */
  readonly isNameTaken?: (name: string) => boolean;
}

export interface SendInput {
  readonly swarmId: string;
  /** An agent of the swarm, or `broadcast` (default). */
  readonly to?: string;
  readonly content: string;
  readonly type?: Exclude<MessageType, "system">;
  readonly extras?: MessageExtras;
  /** Recognised when it is sent again: the message id to use. */
  readonly messageId?: string;
  readonly origin?: string;
}

export interface SentReceipt {
  readonly messageId: string;
  readonly recipients: readonly string[];
}

export interface InviteInput {
  /** Milliseconds; `null` for an invite that never expires. */
  readonly lifetime?: number | null;
  readonly maxUses?: number;
}

/** At most one question to a master about its members in this time, per swarm. */
const SYNC_PAUSE = 60_000;
/** How often what is no longer needed is forgotten, and how long outcomes of deliveries are kept. */
const SWEEP_PAUSE = 86_400_000;
const OUTCOMES_KEPT = 30 * 86_400_000;
/** Replay records outlast the window in which a timestamp is accepted. */
const SEEN_MARGIN = 3_600_000;

export class MeshNode {
  readonly core: MeshCore;
  readonly #parts: NodeParts;
  readonly #delivery;
  readonly #keys: KeyRefresh;
  readonly #senders: RateLimiter;
  readonly #swarms: RateLimiter;
  readonly #joins: RateLimiter;
  readonly #lastSync = new Map<string, number>();
  readonly #listeners = new Set<(message: QueuedMessage) => void>();
  #cancelSweep: (() => void) | undefined;
  readonly #settled = new Set<(messageId: string) => void>();

  private constructor(parts: NodeParts) {
    this.#parts = parts;
    this.core = new MeshCore(parts);
    this.#delivery = createDelivery(this.core);
    this.#keys = new KeyRefresh(this.core);
    const { rateLimits } = parts.options;
    this.#senders = new RateLimiter(rateLimits.sender);
    this.#swarms = new RateLimiter(rateLimits.swarm);
    this.#joins = new RateLimiter(rateLimits.join);
    this.core.onOutgoing = () => this.#delivery.wake();
    this.core.onViewChanged = () => this.#writeState();
    this.core.onSettled = (messageId) => {
      for (const listener of this.#settled) listener(messageId);
    };
    this.core.onQueued = (message) => {
      for (const listener of this.#listeners) listener(message);
    };
  }

  /** Reads what is known and takes up what waits to be sent. */
  static async open(parts: NodeParts): Promise<MeshNode> {
    const node = new MeshNode(parts);
    await node.core.load();
    node.#writeState();
    node.#delivery.wake();
    node.#sweepLater();
    return node;
  }

  async close(): Promise<void> {
    this.#cancelSweep?.();
    await this.#delivery.stop();
  }

  /** Resolves when nothing is under way: for tests and orderly ends. */
  async quiet(): Promise<void> {
    await this.#delivery.quiet();
  }

  /** A peer is back: what waits for it goes now. */
  retryNow(endpoint: string): void {
    this.#delivery.retryNow(new URL(endpoint).origin);
  }

  /** Told of every message that was queued, after it is durable. */
  onMessage(listener: (message: QueuedMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Told the id of a message whenever its delivery to somebody has its final outcome. */
  onSettled(listener: (messageId: string) => void): () => void {
    this.#settled.add(listener);
    return () => this.#settled.delete(listener);
  }

  get id(): string {
    return this.core.id;
  }

  get swarms(): readonly Swarm[] {
    return [...this.core.view.swarms.values()];
  }

  swarm(swarmId: string): Swarm {
    return swarmOf(this.core.view, swarmId);
  }

  byAlias(alias: string): Swarm | undefined {
    return this.swarms.find((swarm) => swarm.alias === alias);
  }

  // --- for peers ------------------------------------------------------------------------------------------------

  receive(value: unknown, headers: IncomingHeaders = {}): Promise<Reception> {
    return receiveMessage(
      {
        core: this.core,
        keys: this.#keys,
        senders: this.#senders,
        swarms: this.#swarms,
        sync: (swarmId) => this.#syncOnce(swarmId),
      },
      value,
      headers,
    );
  }

  /** `address` is the peer's, as the listener knows it. */
  async receiveJoin(
    value: unknown,
    address: string,
  ): Promise<JoinReception & { readonly standing: Standing }> {
    const standing = this.#joins.take(address, this.core.now);
    if (!standing.allowed) {
      const retryAfter = Math.max(1, Math.ceil((standing.resetAt - this.core.now) / 1_000));
      const refusal = {
        code: "RATE_LIMITED",
        reason: "rate_limited",
        message: "too many joins",
        retryAfter,
      } as const;
      return { refusal, standing };
    }
    return { ...(await receiveJoin(this.core, value)), standing };
  }

  // --- swarms ---------------------------------------------------------------------------------------------------

  async create(name: string, options: Partial<SwarmSettings> & { alias?: string } = {}): Promise<Swarm> {
    const { allowMemberInvite = false, requireApproval = false } = options;
    const id = this.#parts.ids.uuid();
    return this.core.exclusive(async () => {
      const alias = this.#alias(name, options.alias);
      const settings = { allowMemberInvite, requireApproval };
      await this.core.carryOut(id, createSwarm(this.core.self, { id, name, alias, settings }));
      return this.swarm(id);
    });
  }

  /** An invite URL. Members may make one where the swarm's settings allow it. */
  async invite(swarmId: string, { lifetime, maxUses }: InviteInput = {}): Promise<string> {
    if (maxUses !== undefined && (!Number.isSafeInteger(maxUses) || maxUses < 1)) {
      throw new MeshError("invalid_invite", "the number of uses must be a positive integer");
    }
    return this.core.exclusive(async () => {
      const swarm = this.swarm(swarmId);
      const isMaster = swarm.master === this.id;
      if (!isMaster && !swarm.settings.allowMemberInvite) {
        throw new MeshError("not_allowed", `only the master of ${swarm.name}, ${swarm.master}, may invite`);
      }
      const master = swarm.members.get(swarm.master);
      if (master === undefined) throw new MeshError("member_not_found", `${swarm.master} is unknown here`);
      const now = this.core.now;
      const span = lifetime === undefined ? this.#parts.options.inviteLifetime : lifetime;
      const claims = {
        swarmId,
        master: swarm.master,
        endpoint: master.endpoint,
        issuedAt: Math.floor(now / 1_000),
        tokenId: this.#parts.ids.uuid(),
        ...(span !== null && { expiresAt: now + span }),
        ...(maxUses !== undefined && { maxUses }),
        ...(!isMaster && { issuer: this.id }),
      };
      const token = signInvite(claims, this.core.pair);
      const reading = readInvite(token);
      if ("refusal" in reading) throw new MeshError("invalid_invite", reading.refusal.message);
      if (isMaster) {
        const invite: Invite = {
          key: reading.invite.key,
          swarmId,
          uses: 0,
          createdAt: now,
          ...(claims.expiresAt !== undefined && { expiresAt: claims.expiresAt }),
          ...(maxUses !== undefined && { maxUses }),
        };
        await this.core.commit([{ kind: "mesh.invite.put", invite }], swarmId);
      }
      return formatInviteUrl(swarmId, master.endpoint, token);
    });
  }

  /** Revokes by the key that `invites` shows, or by the invite itself. */
  async revoke(swarmId: string, keyOrUrl: string): Promise<void> {
    await this.core.exclusive(async () => {
      const swarm = masteredSwarm(this.core.view, swarmId, this.id);
      const token = /[?&]token=([^&#\s]+)/u.exec(keyOrUrl)?.[1];
      const reading = token === undefined ? undefined : readInvite(token);
      const key = reading !== undefined && "invite" in reading ? reading.invite.key : keyOrUrl;
      if (!swarm.invites.has(key)) throw new MeshError("invalid_invite", "there is no such invite here");
      await this.core.commit([{ kind: "mesh.invite.revoke", swarmId, key, at: this.core.now }], swarmId);
    });
  }

  async join(inviteUrl: string, options: { alias?: string } = {}): Promise<Swarm> {
    const alias = this.#alias("swarm", options.alias);
    const { swarm, token } = await joinSwarm(this.core, inviteUrl, alias);
    this.#parts.inviteFiles.keep(swarm.id, token);
    if (options.alias === undefined) await this.setAlias(swarm.id, this.#alias(swarm.name, undefined));
    return this.swarm(swarm.id);
  }

  async setAlias(swarmId: string, alias: string): Promise<void> {
    await this.core.exclusive(async () => {
      const { id, name, master, joinedAt, settings, ...rest } = this.swarm(swarmId);
      if (rest.alias === alias) return;
      checkAlias(alias, (name) => this.#isTaken(name));
      const swarm = { id, name, master, joinedAt, settings, alias };
      await this.core.commit([{ kind: "mesh.swarm.put", swarm }], swarmId);
    });
  }

  pending(swarmId: string): readonly PendingJoin[] {
    return [...this.swarm(swarmId).pending.values()].filter(({ status }) => status === "waiting");
  }

  approve(swarmId: string, agentId: string): Promise<void> {
    return this.core.exclusive(() =>
      this.core.carryOut(swarmId, approveJoin(this.core.view, swarmId, this.id, agentId, this.core.now)),
    );
  }

  reject(swarmId: string, agentId: string): Promise<void> {
    return this.core.exclusive(() =>
      this.core.carryOut(swarmId, rejectJoin(this.core.view, swarmId, this.id, agentId)),
    );
  }

  async leave(swarmId: string): Promise<void> {
    await this.core.exclusive(() =>
      this.core.carryOut(swarmId, leaveSwarm(this.core.view, swarmId, this.id)),
    );
    this.#parts.inviteFiles.forget(swarmId);
  }

  dissolve(swarmId: string, reason?: string): Promise<void> {
    return this.core.exclusive(() =>
      this.core.carryOut(swarmId, dissolveSwarm(this.core.view, swarmId, this.id, reason)),
    );
  }

  kick(swarmId: string, agentId: string, reason?: string): Promise<void> {
    const why = { agentId, now: this.core.now, ...(reason !== undefined && { reason }) };
    return this.core.exclusive(() =>
      this.core.carryOut(swarmId, kickMember(this.core.view, swarmId, this.id, why)),
    );
  }

  /** Lets an agent that was kicked join again, by a new invite. */
  async unban(swarmId: string, agentId: string): Promise<void> {
    await this.core.exclusive(async () => {
      masteredSwarm(this.core.view, swarmId, this.id);
      await this.core.commit([{ kind: "mesh.ban.remove", swarmId, agentId }], swarmId);
    });
  }

  /** Done when the new master has answered; until then this agent is the master. */
  transfer(swarmId: string, newMaster: string): Promise<void> {
    return this.core.exclusive(async () => {
      await this.core.commit([], swarmId, [offerTransfer(this.core.view, swarmId, this.id, newMaster)]);
    });
  }

  async mute(of: Mute["of"], id: string, reason?: string): Promise<void> {
    const mute: Mute = { of, id, at: this.core.now, ...(reason !== undefined && { reason }) };
    await this.core.exclusive(() => this.core.commit([{ kind: "mesh.mute.put", mute }], id));
    await this.#noteMute("member_muted", of, id, reason);
  }

  /** Whether it was muted. */
  async unmute(of: Mute["of"], id: string): Promise<boolean> {
    const { mutedAgents, mutedSwarms } = this.core.view;
    const was = (of === "agent" ? mutedAgents : mutedSwarms).has(id);
    await this.core.exclusive(() => this.core.commit([{ kind: "mesh.mute.remove", of, id }], id));
    if (was) await this.#noteMute("member_unmuted", of, id);
    return was;
  }

  /** Asks the master who is in. @throws MeshError when it cannot be asked. */
  async sync(swarmId: string): Promise<{ readonly conflicts: readonly string[] }> {
    const token = this.#parts.inviteFiles.read(swarmId);
    if (token === undefined)
      throw new MeshError("invalid_invite", "the invite of this swarm is not kept here");
    return { conflicts: await syncSwarm(this.core, swarmId, token) };
  }

  /** Asks every master once: after a start, when announcements may have been missed for good. */
  async syncAll(): Promise<void> {
    await Promise.all(this.swarms.map(({ id }) => this.#syncOnce(id)));
  }

  /**
   * A new key for this agent, announced to every swarm in messages that the old one signs now. `install` makes it the
   * key of the next process, too. A member that hears of it too late asks our endpoint for the key (ASP: Key Refresh).
   */
  async rotateKey(next: KeyPair, install: () => void): Promise<void> {
    await this.core.exclusive(async () => {
      const publicKey = next.publicKey.text;
      for (const swarm of this.swarms) {
        const own = swarm.members.get(this.id);
        const proof = next.sign(rotationText(swarm.id, this.id, publicKey)).toString("base64");
        const content = writeSystemContent("key_rotated", this.id, { public_key: publicKey, proof });
        const writes: MeshRowWrite[] =
          own === undefined
            ? []
            : [{ kind: "mesh.member.put", swarmId: swarm.id, member: { ...own, publicKey } }];
        const to = othersOf(swarm, this.id);
        const announcement: Outgoing = { recipient: BROADCAST, type: "system", content, to, signNow: true };
        await this.core.commit(writes, swarm.id, [announcement]);
      }
      install();
      this.core.usePair(next);
    });
  }

  // --- messages -------------------------------------------------------------------------------------------------

  /** Signed and delivered as soon as each recipient can be reached. Resolves when it is durable. */
  async send(input: SendInput): Promise<SentReceipt> {
    const { swarmId, to = BROADCAST, content, type = "message", extras, messageId, origin } = input;
    const swarm = this.swarm(swarmId);
    if (content === "") throw new MeshError("invalid_message", "a message must not be empty");
    if (messageId !== undefined && !isUuid(messageId)) {
      throw new MeshError("invalid_message", "a message id must be a UUID");
    }
    checkDraft({
      message_id: "",
      swarm_id: swarmId,
      recipient: to,
      type,
      content,
      ...(extras && { extras }),
    });
    const members = recipientsOf(swarm, this.id, to);
    const outgoing: Outgoing = {
      recipient: to,
      type,
      content,
      to: members,
      ...(extras !== undefined && { extras }),
      ...(messageId !== undefined && { messageId }),
      ...(origin !== undefined && { origin }),
    };
    const [id = ""] = await this.core.commit([], swarmId, [outgoing]).catch((error: unknown) => {
      if (!(error instanceof RowConflictError) || error.kind !== "outbox.enqueue") throw error;
      throw new MeshError("overloaded", `too much waits to be sent: ${error.reason}`, { cause: error });
    });
    return { messageId: id, recipients: members.map(({ agentId }) => agentId) };
  }

  /** The rows that send a reply, for whoever commits them together with something of their own. */
  replyRows(original: QueuedMessage, content: string, messageId: string): readonly RowWrite[] | undefined {
    const swarm = this.core.view.swarms.get(original.swarmId);
    const member = swarm?.members.get(original.senderId);
    if (swarm === undefined || member === undefined) return undefined;
    const extras: MessageExtras = {
      in_reply_to: original.messageId,
      thread_id: original.threadId ?? original.messageId,
    };
    const outgoing: Outgoing = {
      recipient: member.agentId,
      type: "message",
      content,
      to: [member],
      extras,
      messageId,
      unbounded: true,
    };
    return this.core.outgoingRows(swarm.id, outgoing).rows;
  }

  /** Something was committed by others that is to be sent. */
  wake(): void {
    this.core.onOutgoing();
  }

  /** ASP: replies keep the thread, or begin one that is named after the message they answer. */
  reply(original: QueuedMessage, content: string): Promise<SentReceipt> {
    return this.send({
      swarmId: original.swarmId,
      to: original.senderId,
      content,
      extras: { in_reply_to: original.messageId, thread_id: original.threadId ?? original.messageId },
    });
  }

  // --- state ----------------------------------------------------------------------------------------------------

  exportState(): Readonly<Record<string, unknown>> {
    return writeStateFile({ agentId: this.id, view: this.core.view, exportedAt: this.core.now });
  }

  /** All or nothing. @throws MeshError when the file is invalid or another agent's. */
  async importState(
    text: string,
    { mode, force = false }: { mode: "merge" | "replace"; force?: boolean },
  ): Promise<ImportDecision> {
    const file = readStateFile(text);
    if (file.agent_id !== this.id && !force) {
      throw new MeshError("invalid_state_file", `the file is of ${file.agent_id}, this agent is ${this.id}`);
    }
    return this.core.exclusive(async () => {
      const decision = decideImport(file, mode, {
        view: this.core.view,
        now: this.core.now,
        aliasFor: (name, taken) => suggestAlias(name, (alias) => taken.has(alias) || this.#isForeign(alias)),
      });
      await this.#parts.store.commit({ appends: [], rows: decision.writes });
      await this.core.load();
      this.#writeState();
      return decision;
    });
  }

  /** Forgets replay records that no longer matter and, on demand, messages that were deleted or archived. */
  async purge(options: { deletedBefore?: number; archivedBefore?: number } = {}): Promise<void> {
    const seenBefore = this.core.now - this.#parts.options.freshness.behind - SEEN_MARGIN;
    const purge: MeshRowWrite = { kind: "mesh.purge", seenBefore, ...options };
    const outcomes = purgeFinished(MESH_QUEUE, this.core.now - OUTCOMES_KEPT);
    await this.#parts.store.commit({ appends: [], rows: [purge, outcomes] });
  }

  /** Memory and disk follow what still matters, without anybody having to think of it. */
  #sweepLater(): void {
    this.#cancelSweep = this.#parts.clock.after(SWEEP_PAUSE, () => {
      this.#sweepLater();
      this.purge().catch((cause: unknown) =>
        this.#parts.report({ code: "mesh_purge", message: "old records could not be removed", cause }),
      );
    });
  }

  async #syncOnce(swarmId: string): Promise<boolean> {
    const now = this.core.now;
    const swarm = this.core.view.swarms.get(swarmId);
    if (swarm === undefined || swarm.master === this.id) return false;
    if (now - (this.#lastSync.get(swarmId) ?? Number.NEGATIVE_INFINITY) < SYNC_PAUSE) return false;
    this.#lastSync.set(swarmId, now);
    const token = this.#parts.inviteFiles.read(swarmId);
    if (token === undefined) return false;
    try {
      await syncSwarm(this.core, swarmId, token);
      return true;
    } catch (cause) {
      this.#parts.report({
        code: "mesh_sync",
        message: `the members of ${swarm.name} could not be asked for`,
        cause,
      });
      return false;
    }
  }

  async #noteMute(action: string, of: Mute["of"], id: string, reason?: string): Promise<void> {
    const swarmIds =
      of === "swarm" ? [id] : this.swarms.filter(({ members }) => members.has(id)).map((one) => one.id);
    const why = reason === undefined ? {} : { reason };
    for (const swarmId of swarmIds) {
      await this.core.note(swarmId, {
        action,
        agentId: of === "agent" ? id : this.id,
        initiatedBy: this.id,
        ...why,
      });
    }
  }

  #alias(name: string, wanted: string | undefined): string {
    const isTaken = (alias: string): boolean => this.#isTaken(alias);
    return wanted === undefined ? suggestAlias(name, isTaken) : checkAlias(wanted, isTaken);
  }

  #isTaken(alias: string): boolean {
    return this.byAlias(alias) !== undefined || this.#isForeign(alias);
  }

  #isForeign(alias: string): boolean {
    return this.#parts.isNameTaken?.(alias) === true;
  }

  /** A copy for others: when it cannot be written the tables are still the truth. */
  #writeState(): void {
    const { stateFile, report } = this.#parts;
    if (stateFile === undefined) return;
    try {
      const state = writeStateFile({ agentId: this.id, view: this.core.view });
      replaceFile(stateFile, `${JSON.stringify(state, null, 2)}\n`);
    } catch (cause) {
      report({ code: "mesh_state_file", message: `${stateFile} could not be written`, cause });
    }
  }
}

/** A UUID that is always the same for the same text: so that a repeated effort is recognised as the same message. */
export function derivedUuid(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}

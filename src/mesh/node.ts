/** One agent of the mesh: everything that its operator can do, and the doors for its peers. */
import type { RowWrite } from "../engine/ports.js";
import { checkAlias, suggestAlias } from "./alias.js";
import { type CoreParts, MESH_QUEUE, MeshCore, offersLane } from "./core.js";
import { createDelivery, parcelOf } from "./delivery.js";
import { MeshError } from "./errors.js";
import type { NextKey } from "./identity/key-file.js";
import type { InviteFiles } from "./invite/files.js";
import { type InviteInput, issueInvite, revokeInvite } from "./invite/issue.js";
import { joinSwarm } from "./joining.js";
import { type JoinReception, type ReadJoinRequest, readJoinRequest, receiveJoin } from "./joins.js";
import { KeyRefresh } from "./key-refresh.js";
import { rotateKey } from "./key-rotation.js";
import { RateLimiter, type Standing } from "./limits.js";
import { isProvenMember } from "./membership/join.js";
import {
  approveJoin,
  createSwarm,
  dissolveSwarm,
  kickMember,
  leaveSwarm,
  masteredSwarm,
  offerTransfer,
  rejectJoin,
  swarmOf,
} from "./membership/operations.js";
import type { Mute, PendingJoin, Swarm, SwarmSettings } from "./membership/types.js";
import { mute, unmute } from "./mutes.js";
import type { QueuedMessage } from "./queue.js";
import { type IncomingHeaders, type Reception, receiveMessage } from "./receive.js";
import { replyExtras, replyRows, type SendInput, type SentReceipt, sendMessage } from "./sending.js";
import type { ImportDecision } from "./state/import.js";
import { type ImportInput, StateKeeper } from "./state/keeper.js";
import { Synchroniser } from "./synchroniser.js";
import { type PurgeInput, Upkeep } from "./upkeep.js";

export interface NodeParts extends CoreParts {
  readonly inviteFiles: InviteFiles;
  /** Rewritten after each change (decisions G6). Absent: no such file. */
  readonly stateFile?: string;
  /** Names that other carriers own. */
  readonly isNameTaken?: (name: string) => boolean;
}

export class MeshNode {
  readonly core: MeshCore;
  readonly #parts: NodeParts;
  readonly #delivery;
  readonly #keys: KeyRefresh;
  readonly #masters: Synchroniser;
  readonly #state: StateKeeper;
  readonly #upkeep: Upkeep;
  readonly #senders: RateLimiter;
  readonly #senderBytes: RateLimiter;
  readonly #swarms: RateLimiter;
  readonly #replays: RateLimiter;
  readonly #joins: RateLimiter;
  readonly #listeners = new Set<(message: QueuedMessage) => void>();

  private constructor(parts: NodeParts) {
    this.#parts = parts;
    this.core = new MeshCore(parts);
    this.#delivery = createDelivery(this.core);
    this.#keys = new KeyRefresh(this.core);
    this.#masters = new Synchroniser(this.core, parts.inviteFiles);
    this.#state = new StateKeeper(this.core, parts.stateFile, (alias) => this.#isForeign(alias));
    this.#upkeep = new Upkeep(this.core);
    const { rateLimits } = parts.options;
    this.#senders = new RateLimiter(rateLimits.sender);
    this.#senderBytes = new RateLimiter(rateLimits.senderBytes);
    this.#swarms = new RateLimiter(rateLimits.swarm);
    this.#replays = new RateLimiter(rateLimits.sender);
    this.#joins = new RateLimiter(rateLimits.join);
    this.core.onOutgoing = () => this.#delivery.wake();
    this.core.onViewChanged = () => this.#state.write();
    this.core.onSwarmGone = (swarmId) => parts.inviteFiles.forget(swarmId);
    this.core.onQueued = (message) => {
      for (const listener of this.#listeners) listener(message);
    };
  }

  /** Reads what is known and takes up what waits to be sent. */
  static async open(parts: NodeParts): Promise<MeshNode> {
    const node = new MeshNode(parts);
    await node.core.load();
    node.#state.write();
    node.#delivery.wake();
    node.#upkeep.start();
    node.#masters.start();
    return node;
  }

  async close(): Promise<void> {
    this.#upkeep.stop();
    this.#masters.stop();
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
        senderBytes: this.#senderBytes,
        swarms: this.#swarms,
        replays: this.#replays,
        askForMessage: (swarmId) => this.#masters.askForMessage(swarmId),
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
    const request = readJoinRequest(this.core, value);
    const standing = this.#joinStanding(request, address);
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
    return { ...(await receiveJoin(this.core, request)), standing };
  }

  /** A member that asks who is in is known: strangers at the same address do not use its right up. */
  #joinStanding(request: ReadJoinRequest, address: string): Standing {
    const { now, view } = this.core;
    if ("refusal" in request) return this.#joins.take(address, now);
    const { swarmId } = request.invite.claims;
    const isMember = isProvenMember(request, view.swarms.get(swarmId));
    return isMember
      ? this.#senders.take(`${swarmId}/${request.agentId}`, now)
      : this.#joins.take(address, now);
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
  invite(swarmId: string, input: InviteInput = {}): Promise<string> {
    return issueInvite(this.core, swarmId, input);
  }

  /** Revokes by the key under which an invite is listed, or by the invite itself. */
  revoke(swarmId: string, keyOrUrl: string): Promise<void> {
    return revokeInvite(this.core, swarmId, keyOrUrl);
  }

  /** Who is in already stays in, under the alias that the swarm has here, unless another is asked for. */
  async join(
    inviteUrl: string,
    options: { alias?: string } = {},
  ): Promise<{ readonly swarm: Swarm; readonly wasMember: boolean }> {
    const chooseAlias = (swarmId: string, name: string): string => {
      const current = this.core.view.swarms.get(swarmId)?.alias;
      const keeps = current !== undefined && (options.alias ?? current) === current;
      return keeps ? current : this.#alias(name, options.alias);
    };
    const { inviteFiles } = this.#parts;
    const { swarmId, wasMember } = await joinSwarm(this.core, inviteUrl, { chooseAlias, inviteFiles });
    return { swarm: this.swarm(swarmId), wasMember };
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

  leave(swarmId: string): Promise<void> {
    return this.core.exclusive(() =>
      this.core.carryOut(swarmId, leaveSwarm(this.core.view, swarmId, this.id)),
    );
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
      const offer = offerTransfer(this.core.view, swarmId, this.id, newMaster);
      await this.#assertNoOpenOffer(swarmId, newMaster);
      await this.core.commit([], swarmId, [offer]);
    });
  }

  async #assertNoOpenOffer(swarmId: string, newMaster: string): Promise<void> {
    const { outbox } = this.#parts.store;
    const head = await outbox.head(MESH_QUEUE, offersLane(swarmId));
    const item = head === undefined ? undefined : await outbox.item(head.id);
    const offered = item === undefined ? undefined : parcelOf(item).recipientId;
    if (offered === undefined || offered === newMaster || !this.swarm(swarmId).members.has(offered)) return;
    throw new MeshError(
      "transfer_open",
      `${offered} was offered the swarm and has not answered yet: wait for it, or kick it first`,
    );
  }

  mute(of: Mute["of"], id: string, reason?: string): Promise<void> {
    return mute(this.core, of, id, reason);
  }

  /** Whether it was muted. */
  unmute(of: Mute["of"], id: string): Promise<boolean> {
    return unmute(this.core, of, id);
  }

  /** Asks the master who is in. @throws MeshError when it cannot be asked. */
  sync(swarmId: string): Promise<{ readonly conflicts: readonly string[] }> {
    return this.#masters.sync(swarmId);
  }

  /** Asks every master once: after a start, when announcements may have been missed for good. */
  async syncAll(): Promise<void> {
    await Promise.all(this.swarms.map(({ id }) => this.#masters.syncOnce(id)));
  }

  /** A new key, announced with the old one. `install` makes it the key of the next process, too. */
  rotateKey(next: Pick<NextKey, "pair" | "install">): Promise<void> {
    return rotateKey(this.core, next);
  }

  // --- messages -------------------------------------------------------------------------------------------------

  /** Signed and delivered as soon as each recipient can be reached. Resolves when it is durable. */
  send(input: SendInput): Promise<SentReceipt> {
    return sendMessage(this.core, input);
  }

  /** The rows that send a reply, for whoever commits them together with something of their own. */
  replyRows(original: QueuedMessage, content: string, messageId: string): readonly RowWrite[] | undefined {
    return replyRows(this.core, original, content, messageId);
  }

  /** Something was committed by others that is to be sent. */
  wake(): void {
    this.core.onOutgoing();
  }

  reply(original: QueuedMessage, content: string): Promise<SentReceipt> {
    const { swarmId, senderId: to } = original;
    return this.send({ swarmId, to, content, extras: replyExtras(original) });
  }

  // --- state ----------------------------------------------------------------------------------------------------

  exportState(): Readonly<Record<string, unknown>> {
    return this.#state.export();
  }

  /** All or nothing. @throws MeshError when the file is invalid or another agent's. */
  importState(text: string, input: ImportInput): Promise<ImportDecision> {
    return this.#state.import(text, input);
  }

  /** Forgets replay records that no longer matter and, on demand, messages that were deleted or archived. */
  purge(input: PurgeInput = {}): Promise<void> {
    return this.#upkeep.purge(input);
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
}

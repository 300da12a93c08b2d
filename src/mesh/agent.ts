/** One mesh agent: the operations of its operator, and the entry points for its peers. */
import { MailroomError, retryAfterSeconds } from "../base/index.js";
import type { RowWrite } from "../journal/index.js";
import { checkAlias, suggestAlias } from "./alias.js";
import { MESH_QUEUE, MeshContext, type MeshContextParts, offersLane } from "./context.js";
import type { NextKey } from "./identity/key-file.js";
import type { InviteFiles } from "./invite/files.js";
import { joinSwarm } from "./join/client.js";
import { type InviteInput, issueInvite, revokeInvite } from "./join/invites.js";
import { MembershipSync } from "./join/membership-sync.js";
import { PendingJoins } from "./join/pending-joins.js";
import { KeyRefresh } from "./keys/refresh.js";
import { rotateKey } from "./keys/rotation.js";
import { type LimitStatus, RateLimiter } from "./limits.js";
import { Maintenance, type PurgeInput } from "./maintenance.js";
import { announceEndpoint } from "./membership/endpoint.js";
import { isProvenMember } from "./membership/join.js";
import {
  approveJoin,
  createSwarm,
  dissolveSwarm,
  kickMember,
  leaveSwarm,
  offerTransfer,
  rejectJoin,
  requireMasteredSwarm,
  requireSwarm,
  toSwarmRecord,
} from "./membership/operations.js";
import type { Member, Mute, PendingJoin, Swarm, SwarmSettings } from "./membership/types.js";
import type { QueuedMessage } from "./messages.js";
import { mute, unmute } from "./mutes.js";
import {
  type JoinResult,
  type ReadJoinRequest,
  readJoinRequest,
  receiveJoin,
} from "./receive/join-request.js";
import { type IncomingHeaders, type ReceiveResult, receiveMessage } from "./receive/message.js";
import { createDelivery, toOutboundMessage } from "./send/delivery.js";
import { replyExtras, replyRows, type SendInput, type SentReceipt, sendMessage } from "./send/message.js";
import { createPeers } from "./send/peers.js";
import {
  dropWaiting,
  firstWaiting,
  retryWaiting,
  type WaitingMessage,
  type WaitingSelection,
  waitingFor,
} from "./send/waiting.js";
import type { ImportDecision } from "./state/import.js";
import { type ImportInput, StateFile } from "./state/state-file.js";

export interface MeshAgentParts extends MeshContextParts {
  readonly inviteFiles: InviteFiles;
  /** Rewritten after each change (decision G6). Without it no such file is written. */
  readonly stateFile?: string;
  /** Names that other carriers own. */
  readonly isNameTaken?: (name: string) => boolean;
}

export class MeshAgent {
  readonly context: MeshContext;
  readonly #parts: MeshAgentParts;
  readonly #delivery;
  readonly #keys: KeyRefresh;
  readonly #masters: MembershipSync;
  readonly #pendingJoins: PendingJoins;
  readonly #state: StateFile;
  readonly #upkeep: Maintenance;
  readonly #senders: RateLimiter;
  readonly #senderBytes: RateLimiter;
  readonly #swarms: RateLimiter;
  readonly #replays: RateLimiter;
  readonly #joins: RateLimiter;
  readonly #listeners = new Set<(message: QueuedMessage) => void>();

  private constructor(parts: MeshAgentParts) {
    this.#parts = parts;
    this.context = new MeshContext(parts);
    this.#delivery = createDelivery(this.context);
    this.#keys = new KeyRefresh(this.context);
    this.#masters = new MembershipSync(this.context, parts.inviteFiles);
    this.#pendingJoins = new PendingJoins(this.context, parts.inviteFiles, (url) => this.join(url));
    this.#state = new StateFile(this.context, parts.stateFile, (alias) => this.#isForeign(alias));
    this.#upkeep = new Maintenance(this.context);
    const { rateLimits } = parts.options;
    this.#senders = new RateLimiter(rateLimits.sender);
    this.#senderBytes = new RateLimiter(rateLimits.senderBytes);
    this.#swarms = new RateLimiter(rateLimits.swarm);
    this.#replays = new RateLimiter(rateLimits.sender);
    this.#joins = new RateLimiter(rateLimits.join);
    this.context.onOutgoing = () => this.#delivery.wake();
    this.context.onViewChanged = () => this.#state.write();
    this.context.onMasterUnheard = (swarmId) => this.#masters.syncSoon(swarmId);
    this.context.onSwarmGone = (swarmId) => parts.inviteFiles.forget(swarmId);
    this.context.onQueued = (message) => {
      for (const listener of this.#listeners) listener(message);
    };
  }

  /** Reads the stored state and resumes pending deliveries. */
  static async open(parts: MeshAgentParts): Promise<MeshAgent> {
    const agent = new MeshAgent(parts);
    await agent.context.load();
    agent.#state.write();
    agent.#delivery.wake();
    agent.#upkeep.start();
    agent.#masters.start();
    agent.#pendingJoins.start();
    await agent.#announceEndpoint();
    return agent;
  }

  async close(): Promise<void> {
    this.#upkeep.stop();
    this.#masters.stop();
    this.#pendingJoins.stop();
    await this.#delivery.stop();
  }

  /** For administrators. */
  get outbox(): ReturnType<typeof createDelivery> {
    return this.#delivery;
  }

  /** Resolves when no delivery is running. */
  async quiet(): Promise<void> {
    await this.#delivery.quiet();
  }

  /** Retries pending deliveries to an endpoint that is reachable again. */
  retryNow(endpoint: string): void {
    this.#delivery.retryNow(new URL(endpoint).origin);
  }

  /** Calls the listener for every queued message, after it is durable. */
  onMessage(listener: (message: QueuedMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get id(): string {
    return this.context.id;
  }

  get swarms(): readonly Swarm[] {
    return [...this.context.view.swarms.values()];
  }

  swarm(swarmId: string): Swarm {
    return requireSwarm(this.context.view, swarmId);
  }

  byAlias(alias: string): Swarm | undefined {
    return this.swarms.find((swarm) => swarm.alias === alias);
  }

  // --- for peers ------------------------------------------------------------------------------------------------

  receive(value: unknown, headers: IncomingHeaders = {}): Promise<ReceiveResult> {
    return receiveMessage(
      {
        context: this.context,
        keys: this.#keys,
        senders: this.#senders,
        senderBytes: this.#senderBytes,
        swarms: this.#swarms,
        replays: this.#replays,
        askForMessage: (swarmId) => this.#masters.askForMessage(swarmId),
        askToJoin: (swarmId) => this.#pendingJoins.ask(swarmId),
      },
      value,
      headers,
    );
  }

  /** `address` is the peer's address as determined by the listener. */
  async receiveJoin(value: unknown, address: string): Promise<JoinResult & { readonly limit: LimitStatus }> {
    const request = readJoinRequest(this.context, value);
    const limit = this.#joinStanding(request, address);
    if (!limit.allowed) {
      const retryAfter = retryAfterSeconds(limit.resetAt - this.context.now);
      const refusal = {
        code: "RATE_LIMITED",
        reason: "rate_limited",
        message: "too many join requests",
        retryAfter,
      } as const;
      return { refusal, limit };
    }
    return { ...(await receiveJoin(this.context, request)), limit };
  }

  /** Counts a proven member by its id, so that unauthenticated peers at the same address cannot exhaust its limit. */
  #joinStanding(request: ReadJoinRequest, address: string): LimitStatus {
    const { now, view } = this.context;
    if ("refusal" in request) return this.#joins.consume(address, now);
    const { swarmId } = request.invite.claims;
    const isMember = isProvenMember(request, view.swarms.get(swarmId));
    return isMember
      ? this.#senders.consume(`${swarmId}/${request.agentId}`, now)
      : this.#joins.consume(address, now);
  }

  // --- swarms ---------------------------------------------------------------------------------------------------

  async create(name: string, options: Partial<SwarmSettings> & { alias?: string } = {}): Promise<Swarm> {
    const { allowMemberInvite = false, requireApproval = false } = options;
    const id = this.#parts.ids.uuid();
    return this.context.exclusive(async () => {
      const alias = this.#alias(name, options.alias);
      const settings = { allowMemberInvite, requireApproval };
      await this.context.execute(id, createSwarm(this.context.self, { id, name, alias, settings }));
      return this.swarm(id);
    });
  }

  /** Returns an invite URL. Members can issue invites if the swarm's settings allow it. */
  invite(swarmId: string, input: InviteInput = {}): Promise<string> {
    return issueInvite(this.context, swarmId, input);
  }

  /** Revokes an invite, given by its listed key or its URL. */
  revoke(swarmId: string, keyOrUrl: string): Promise<void> {
    return revokeInvite(this.context, swarmId, keyOrUrl);
  }

  /** Joining again is a no-op; the alias is kept unless a new one is given. */
  async join(
    inviteUrl: string,
    options: { alias?: string } = {},
  ): Promise<{ readonly swarm: Swarm; readonly wasMember: boolean }> {
    const chooseAlias = (swarmId: string, name: string): string => {
      const current = this.context.view.swarms.get(swarmId)?.alias;
      const keeps = current !== undefined && (options.alias ?? current) === current;
      return keeps ? current : this.#alias(name, options.alias);
    };
    const { inviteFiles } = this.#parts;
    const { swarmId, wasMember } = await joinSwarm(this.context, inviteUrl, { chooseAlias, inviteFiles });
    return { swarm: this.swarm(swarmId), wasMember };
  }

  async setAlias(swarmId: string, alias: string): Promise<void> {
    await this.context.exclusive(async () => {
      const known = this.swarm(swarmId);
      if (known.alias === alias) return;
      checkAlias(alias, (name) => this.#isTaken(name));
      const swarm = { ...toSwarmRecord(known), alias };
      await this.context.commit([{ kind: "mesh.swarm.put", swarm }], swarmId);
    });
  }

  pending(swarmId: string): readonly PendingJoin[] {
    return [...this.swarm(swarmId).pending.values()].filter(({ status }) => status === "waiting");
  }

  approve(swarmId: string, agentId: string): Promise<void> {
    return this.context.exclusive(() =>
      this.context.execute(
        swarmId,
        approveJoin(this.context.view, swarmId, this.id, agentId, this.context.now),
      ),
    );
  }

  reject(swarmId: string, agentId: string): Promise<void> {
    return this.context.exclusive(() =>
      this.context.execute(swarmId, rejectJoin(this.context.view, swarmId, this.id, agentId)),
    );
  }

  leave(swarmId: string): Promise<void> {
    return this.context.exclusive(() =>
      this.context.execute(swarmId, leaveSwarm(this.context.view, swarmId, this.id)),
    );
  }

  dissolve(swarmId: string, reason?: string): Promise<void> {
    return this.context.exclusive(() =>
      this.context.execute(swarmId, dissolveSwarm(this.context.view, swarmId, this.id, reason)),
    );
  }

  kick(swarmId: string, agentId: string, reason?: string): Promise<void> {
    const why = { agentId, now: this.context.now, ...(reason !== undefined && { reason }) };
    return this.context.exclusive(() =>
      this.context.execute(swarmId, kickMember(this.context.view, swarmId, this.id, why)),
    );
  }

  /** Allows a kicked agent to join again with a new invite. */
  async unban(swarmId: string, agentId: string): Promise<void> {
    await this.context.exclusive(async () => {
      requireMasteredSwarm(this.context.view, swarmId, this.id);
      await this.context.commit([{ kind: "mesh.ban.remove", swarmId, agentId }], swarmId);
    });
  }

  /** Takes effect when the new master accepts; until then this agent remains the master. */
  transfer(swarmId: string, newMaster: string): Promise<void> {
    return this.context.exclusive(async () => {
      const offer = offerTransfer(this.context.view, swarmId, this.id, {
        newMaster,
        now: this.context.now,
      });
      await this.#assertNoOpenOffer(swarmId, newMaster);
      await this.context.commit([], swarmId, [offer]);
    });
  }

  async #assertNoOpenOffer(swarmId: string, newMaster: string): Promise<void> {
    const { outbox } = this.#parts.store;
    const head = await outbox.head(MESH_QUEUE, offersLane(swarmId));
    const item = head === undefined ? undefined : await outbox.item(head.id);
    const offered = item === undefined ? undefined : toOutboundMessage(item).recipientId;
    if (offered === undefined || offered === newMaster || !this.swarm(swarmId).members.has(offered)) return;
    throw new MailroomError(
      "transfer_open",
      `${offered} was offered the swarm and has not responded: wait for its response, or kick it first`,
    );
  }

  mute(of: Mute["of"], id: string, reason?: string): Promise<void> {
    return mute(this.context, of, id, reason);
  }

  /** Returns whether it was muted. */
  unmute(of: Mute["of"], id: string): Promise<boolean> {
    return unmute(this.context, of, id);
  }

  /** Fetches the member list from the master. @throws MailroomError when the master cannot be asked */
  sync(swarmId: string): Promise<{ readonly conflicts: readonly string[] }> {
    return this.#masters.sync(swarmId);
  }

  /**
   * Fetches the member list from every master once, because announcements may have been missed while the server was
   * down.
   */
  async syncAll(): Promise<void> {
    this.#pendingJoins.askAll();
    await Promise.all(this.swarms.map(({ id }) => this.#masters.syncOnce(id)));
  }

  /** Asks a member for its key. What waits for it is then retried. @throws MailroomError when it is unreachable */
  async ping(
    member: Member,
  ): Promise<{ readonly milliseconds: number; readonly key: "matches" | "differs" }> {
    const { agentId, endpoint, publicKey } = member;
    const began = this.context.now;
    const peers = createPeers(this.#parts.http, this.id, () => this.context.now);
    const info = await peers.info(endpoint, agentId);
    if (!("publicKey" in info)) {
      throw new MailroomError("peer_unreachable", `${agentId} cannot be reached: ${info.reason}`);
    }
    this.retryNow(endpoint);
    const key = info.publicKey === publicKey ? "matches" : "differs";
    return { milliseconds: this.context.now - began, key };
  }

  /** Changes the key and announces the new key, signed with the old one. `install` stores it for the next start. */
  rotateKey(next: Pick<NextKey, "pair" | "install">): Promise<{ readonly revokedInvites: number }> {
    return rotateKey(this.context, next);
  }

  /** Moves this agent to another endpoint and notifies all members. `install` stores it for the next start. */
  async changeEndpoint(endpoint: string, install: () => void): Promise<void> {
    install();
    this.context.useEndpoint(endpoint);
    await this.#announceEndpoint();
  }

  /** Also at startup: the endpoint may have been changed while no server ran. */
  async #announceEndpoint(): Promise<void> {
    await this.context.exclusive(async () => {
      const { view, identity } = this.context;
      for (const [swarmId, operation] of announceEndpoint(view, identity)) {
        await this.context.execute(swarmId, operation);
      }
    });
  }

  /** The swarms that this agent has asked to join, and whose masters have not approved it yet. */
  get pendingJoins(): readonly string[] {
    return this.#parts.inviteFiles.pending();
  }

  // --- messages -------------------------------------------------------------------------------------------------

  /** Resolves when the message is durable. It is signed and delivered as soon as each recipient is reachable. */
  send(input: SendInput): Promise<SentReceipt> {
    return sendMessage(this.context, input);
  }

  /** Returns the rows that send a reply, so that the caller can commit them together with its own. */
  replyRows(original: QueuedMessage, content: string, messageId: string): readonly RowWrite[] | undefined {
    return replyRows(this.context, original, content, messageId);
  }

  /** Why and since when a message waits for a recipient; `undefined` if it does not. */
  waitingFor(messageId: string, recipientId: string): Promise<WaitingMessage | undefined> {
    return waitingFor(this.context, messageId, recipientId);
  }

  /** The message that is delivered next to each recipient that something waits for. */
  waiting(limit: number): Promise<readonly WaitingMessage[]> {
    return firstWaiting(this.context, limit);
  }

  /** Retries waiting messages now: one message, those of one recipient, or all. Returns the recipients. */
  retry(selection: WaitingSelection): Promise<readonly string[]> {
    return retryWaiting(this.context, this.#delivery, selection);
  }

  /** Abandons a waiting message, for one recipient or all. Returns the recipients. */
  drop(selection: WaitingSelection & { readonly messageId: string }): Promise<readonly string[]> {
    return dropWaiting(this.context, this.#delivery, selection);
  }

  /** Starts delivering messages that another component committed. */
  wake(): void {
    this.context.onOutgoing();
  }

  reply(original: QueuedMessage, content: string): Promise<SentReceipt> {
    const { swarmId, senderId: to } = original;
    return this.send({ swarmId, to, content, extras: replyExtras(original) });
  }

  // --- state ----------------------------------------------------------------------------------------------------

  exportState(): Readonly<Record<string, unknown>> {
    return this.#state.export();
  }

  /** Imports all of the state or nothing. @throws MailroomError when the file is invalid or belongs to another agent */
  importState(text: string, input: ImportInput): Promise<ImportDecision> {
    return this.#state.import(text, input);
  }

  /** Removes expired replay records and, on request, deleted or archived messages. */
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

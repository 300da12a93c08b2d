/** Shared by all parts of a mesh agent: identity, membership state, and the only way to change it. */

import { LRUCache } from "lru-cache";
import type { Clock, Ids, Random, Report } from "../base/index.js";
import type { JournalKey, RowWrite } from "../journal/index.js";

import type { HttpClient } from "../net/index.js";
import { type Backlog, enqueue, type FinalOutcome } from "../outbox/index.js";
import { type KeyPair, type PublicKey, parsePublicKey } from "./identity/keys.js";

import type { Announcement, Operation } from "./membership/operations.js";
import type { LifecycleEvent, Member, MeshIdentity } from "./membership/types.js";
import { MembershipState } from "./membership-state.js";
import { type Signer, signMessage, type UnsignedMessage } from "./message/build.js";
import type { MeshMessage, MessageExtras } from "./message/types.js";
import { type QueuedMessage, queueKey, type SentMessage } from "./messages.js";
import type { MeshOptions } from "./options.js";
import type { MeshStore } from "./ports.js";
import { formatTime } from "./time.js";
import type { MeshRowWrite, ViewWrite } from "./writes.js";

export interface MeshContextParts {
  readonly store: MeshStore;
  readonly http: HttpClient;
  /** Why `http` would never call a URL, as far as the URL shows. Default: it would. */
  readonly checkUrl?: (url: string) => string | undefined;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly identity: MeshIdentity;
  readonly pair: KeyPair;
  /** Former keys, latest first: peers that missed a rotation still have one of these. */
  readonly formerPairs?: readonly KeyPair[];
  readonly options: MeshOptions;
  readonly report: Report;
  readonly random?: Random;
}

/** Members with the same origin share a delivery target, so pending messages for one delay all of them. */
export function deliveryTarget({ endpoint }: Pick<Member, "endpoint">): string {
  return new URL(endpoint).origin;
}

/** Mastership is offered to one member at a time: two acceptances would make two masters. */
export const offersLane = (swarmId: string): string => `${swarmId}/`;

export const memberLane = (swarmId: string, agentId: string): string => `${swarmId}/${agentId}`;

/** For a refused lifecycle message, which must not delay others. */
export const asideLane = (swarmId: string, agentId: string, itemId: string): string =>
  `${swarmId}/${agentId}/aside/${itemId}`;

export const deliveryKey = (messageId: string, recipientId: string): string => `${messageId}/${recipientId}`;
export const asideKey = (messageId: string, recipientId: string): string =>
  `${messageId}/${recipientId}/aside`;

export const MESH_QUEUE = "mesh";

/** The mail of a task for which messages are sent, one per recipient. */
export interface MailReference {
  readonly key: JournalKey;
  readonly messageId: string;
  /** The alias in the mail's address. */
  readonly swarm: string;
  /** The ids of all these messages. */
  readonly parts: readonly string[];
}

/** The payload of an outbox item. The message is signed at delivery. */
export interface OutboundMessage {
  readonly draft: UnsignedMessage;
  readonly sentAt: number;
  readonly recipientId: string;
  readonly endpoint: string;
  /** Already signed, because the key is about to be replaced. */
  readonly signed?: MeshMessage;
  readonly completes?: { readonly transferTo: string };
  readonly mail?: MailReference;
  /** It was refused once and is tried again beside the others. */
  readonly aside?: true;
}

/** An announcement with the fields of an ordinary message. */
export interface Outgoing extends Announcement {
  readonly messageId?: string;
  readonly extras?: MessageExtras;
  readonly origin?: string;
  /** Sign now instead of at delivery. */
  readonly signNow?: boolean;
  readonly mail?: MailReference;
}

export class MeshContext {
  readonly parts: MeshContextParts;
  readonly view = new MembershipState();
  /** Swarms that this agent is joining: their messages may arrive before the response to the join request. */
  readonly joining = new Set<string>();
  /** Called after a commit. */
  onQueued: (message: QueuedMessage) => void = () => undefined;
  onViewChanged: () => void = () => undefined;
  onOutgoing: () => void = () => undefined;
  /** Commits the rows of a delivery with its final outcome, together with those of the task it belongs to. */
  commitOutcome: (
    outbound: OutboundMessage,
    final: FinalOutcome,
    rows: readonly RowWrite[],
  ) => Promise<unknown> = (_outbound, _final, rows) =>
    this.parts.store.commit({ appends: [], rows }, "result");
  onSwarmGone: (swarmId: string) => void = () => undefined;
  /** A new master announced itself, so announcements of the old one may be missing. */
  onMasterUnheard: (swarmId: string) => void = () => undefined;
  /** Targets for which an item waits until another is delivered. */
  readonly heldBack = new Set<string>();
  #identity: MeshIdentity;
  #pair: KeyPair;
  #formerPairs: readonly KeyPair[];
  /** Pending messages per target; set by the delivery. */
  backlog: Pick<Backlog, "isFull" | "add"> = { isFull: () => false, add: () => undefined };
  #keys = new LRUCache<string, PublicKey>({ max: 4_096 });
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: MeshContextParts) {
    this.parts = parts;
    this.#identity = parts.identity;
    this.#pair = parts.pair;
    this.#formerPairs = parts.formerPairs ?? [];
  }

  get id(): string {
    return this.#identity.agentId;
  }

  get identity(): MeshIdentity {
    return this.#identity;
  }

  /** Advertises this endpoint from now on. */
  useEndpoint(endpoint: string): void {
    this.#identity = { ...this.#identity, endpoint };
  }

  get pair(): KeyPair {
    return this.#pair;
  }

  /** Signs outgoing messages. */
  get signer(): Signer {
    const { agentId, endpoint } = this.#identity;
    return { agentId, endpoint, pair: this.#pair, seals: this.parts.options.sealMessages };
  }

  /** Signers with the former keys. */
  get formerSigners(): readonly Signer[] {
    return this.#formerPairs.map((pair) => ({ ...this.signer, pair }));
  }

  /** Signs everything with this key from now on. */
  usePair(pair: KeyPair): void {
    this.#formerPairs = [this.#pair, ...this.#formerPairs];
    this.#pair = pair;
  }

  get now(): number {
    return this.parts.clock.now();
  }

  get self(): Member {
    const { agentId, endpoint } = this.#identity;
    return { agentId, endpoint, publicKey: this.#pair.publicKey.text, joinedAt: this.now };
  }

  /** Reads first and replaces then, so that the view is never empty for concurrent readers. */
  async load(): Promise<void> {
    const known = await this.parts.store.mesh.view();
    this.view.clear();
    for (const write of known) this.view.apply(write);
  }

  /** Returns the parsed key. Parsing costs a third of a verification, so the last few thousand are cached. */
  keyOf(text: string): PublicKey | undefined {
    const known = this.#keys.get(text);
    if (known !== undefined) return known;
    const parsed = parsePublicKey(text);
    if ("reason" in parsed) return undefined;
    this.#keys.set(text, parsed.key);
    return parsed.key;
  }

  /**
   * Runs membership changes one after another, so that each decision sees the commit before it. Messages that change
   * no membership need not wait here.
   */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#last.then(work, work);
    this.#last = run.catch(() => undefined);
    return run;
  }

  /** Returns the rows that send a message: its log entry, and an outbox item per recipient. */
  outgoingRows(
    swarmId: string,
    outgoing: Outgoing,
  ): { readonly messageId: string; readonly rows: RowWrite[] } {
    const { ids, options } = this.parts;
    const { recipient, type, content, extras, to, completes, origin, signNow = false, mail } = outgoing;
    const messageId = outgoing.messageId ?? ids.uuid();
    const sentAt = this.now;
    const draft: UnsignedMessage = {
      message_id: messageId,
      swarm_id: swarmId,
      recipient,
      type,
      content,
      ...(extras && { extras }),
    };
    const signed = signNow ? signMessage(draft, this.signer, sentAt) : undefined;
    const rows = to.flatMap((member): RowWrite[] => {
      const recipientId = member.agentId;
      const outbound: OutboundMessage = {
        draft,
        sentAt,
        recipientId,
        endpoint: member.endpoint,
        ...(completes && { completes }),
        ...(signed && { signed }),
        ...(mail && { mail }),
      };
      const target = deliveryTarget(member);
      this.backlog.add(target);
      const sent: SentMessage = {
        messageId,
        swarmId,
        recipientId,
        type,
        content,
        sentAt,
        status: "sent",
        ...(origin !== undefined && { origin }),
      };
      const log: MeshRowWrite = { kind: "mesh.sent.put", sent };
      const item = {
        queue: MESH_QUEUE,
        id: ids.ordered(),
        lane: completes === undefined ? memberLane(swarmId, recipientId) : offersLane(swarmId),
        target,
        payload: JSON.stringify(outbound),
        createdAt: sentAt,
        dueAt: sentAt,
        deadlineAt: sentAt + options.deadline,
        dedupeKey: deliveryKey(messageId, recipientId),
      };
      return [log, enqueue(item)];
    });
    return { messageId, rows };
  }

  /**
   * Whether the queue for a member's target is full. @param before number of messages about to be added for the
   * target
   */
  isFull(member: Member, before = 0): boolean {
    return this.backlog.isFull(deliveryTarget(member), this.parts.options.maxWaiting - before);
  }

  /** Commits a change together with its announcements, then updates the view. */
  async commit(
    writes: readonly MeshRowWrite[],
    swarmId: string,
    outgoing: readonly Outgoing[] = [],
  ): Promise<readonly string[]> {
    const sends = outgoing.map((one) => this.outgoingRows(swarmId, one));
    await this.parts.store.commit({ appends: [], rows: [...writes, ...sends.flatMap(({ rows }) => rows)] });
    this.follow(writes);
    if (sends.length > 0) this.onOutgoing();
    return sends.map(({ messageId }) => messageId);
  }

  /** Applies committed writes to the view. */
  follow(writes: readonly RowWrite[]): void {
    const changes = writes.filter(isViewWrite);
    if (changes.length === 0) return;
    for (const write of changes) {
      this.view.apply(write);
      if (write.kind === "mesh.swarm.remove") this.onSwarmGone(write.swarmId);
    }
    this.onViewChanged();
  }

  /** Executes a local operation: commits its changes and announcements, then records its event. */
  async execute(swarmId: string, { writes, announcements, event }: Operation): Promise<void> {
    await this.commit(writes, swarmId, announcements);
    if (event !== undefined) await this.recordEvent(swarmId, event);
  }

  /**
   * ASP: Lifecycle Event Notifications. Records the event in the agent's own inbox. Committed separately: if it
   * cannot be stored, the operation is still valid.
   */
  async recordEvent(swarmId: string, event: LifecycleEvent): Promise<void> {
    const { ids, store, report } = this.parts;
    const { action, agentId, initiatedBy = null, reason = null } = event;
    const content = JSON.stringify({
      type: "system",
      action,
      swarm_id: swarmId,
      agent_id: agentId,
      initiated_by: initiatedBy,
      reason,
    });
    const messageId = ids.uuid();
    const senderId = initiatedBy ?? agentId;
    const receivedAt = this.now;
    const message: QueuedMessage = {
      id: queueKey(swarmId, senderId, messageId),
      messageId,
      swarmId,
      senderId,
      type: "system",
      content,
      envelope: content,
      receivedAt,
      status: "completed",
      box: "unread",
      processedAt: receivedAt,
    };
    const row: MeshRowWrite = { kind: "mesh.queue.put", message };
    try {
      await store.commit({ appends: [], rows: [row] });
    } catch (cause) {
      const text = `${action} of ${agentId} at ${formatTime(receivedAt)} could not be recorded`;
      report({ code: "mesh_note_failed", message: text, cause });
    }
  }
}

const NOT_OF_THE_VIEW = new Set([
  "mesh.seen.put",
  "mesh.queue.put",
  "mesh.queue.mark",
  "mesh.box.mark",
  "mesh.sent.put",
  "mesh.sent.mark",
  "mesh.purge",
  "mesh.clear",
]);

function isViewWrite(write: RowWrite): write is ViewWrite {
  return write.kind.startsWith("mesh.") && !NOT_OF_THE_VIEW.has(write.kind);
}

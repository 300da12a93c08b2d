/** What every part of a mesh node shares: who we are, what we know, and the one way to change it. */

import { LRUCache } from "lru-cache";
import type { Clock, Ids, JournalKey, RowWrite, Store } from "../engine/ports.js";
import type { HttpClient, Random } from "../net/index.js";
import { type Backlog, enqueue, type Final, type OutboxReads } from "../outbox/index.js";
import type { KeyPair, PublicKey } from "./identity/keys.js";
import { parsePublicKey } from "./identity/keys.js";
import type { LifecycleEvent } from "./membership/lifecycle.js";
import type { Announcement, Operation } from "./membership/operations.js";
import type { Member, MeshIdentity } from "./membership/types.js";
import { type Draft, type Signer, signDraft } from "./message/build.js";
import type { MeshMessage, MessageExtras } from "./message/types.js";
import type { MeshOptions } from "./options.js";
import { type MeshReads, type QueuedMessage, queueKey, type SentMessage } from "./queue.js";
import { formatTime } from "./time.js";
import { View } from "./view.js";
import type { MeshRowWrite, ViewWrite } from "./writes.js";

export interface MeshStore {
  readonly commit: Store["commit"];
  readonly mesh: MeshReads;
  readonly outbox: OutboxReads;
}

export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly cause?: unknown;
}

export interface CoreParts {
  readonly store: MeshStore;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly identity: MeshIdentity;
  readonly pair: KeyPair;
  /** Keys that it had before, the latest first: peers that have not heard of the change know one of these. */
  readonly formerPairs?: readonly KeyPair[];
  readonly options: MeshOptions;
  readonly report: (problem: Problem) => void;
  readonly random?: Random;
}

/** Several members may be behind one place, and what waits for one waits for all of them. */
export function placeOf({ endpoint }: Pick<Member, "endpoint">): string {
  return new URL(endpoint).origin;
}

/** Mastership is offered to one member at a time: two that take it would be two masters. */
export const offersLane = (swarmId: string): string => `${swarmId}/`;

export const MESH_QUEUE = "mesh";

/** Mail of a task that messages are sent for, one to each member it is addressed to. */
export interface MailPlace {
  readonly key: JournalKey;
  readonly messageId: string;
  /** The alias that it was addressed to. */
  readonly swarm: string;
  /** The ids of all these messages. */
  readonly parts: readonly string[];
}

/** An outbox item's payload: what to say to whom. The signature is made at delivery. */
export interface Parcel {
  readonly draft: Draft;
  readonly sentAt: number;
  readonly recipientId: string;
  readonly endpoint: string;
  /** Signed already, because the key it needs is on its way out. */
  readonly signed?: MeshMessage;
  readonly completes?: { readonly transferTo: string };
  readonly mail?: MailPlace;
}

/** An announcement with what only an ordinary message has. */
export interface Outgoing extends Announcement {
  readonly messageId?: string;
  readonly extras?: MessageExtras;
  readonly origin?: string;
  /** Sign now instead of at delivery. */
  readonly signNow?: boolean;
  readonly mail?: MailPlace;
}

export class MeshCore {
  readonly parts: CoreParts;
  readonly view = new View();
  /** Swarms that we are about to be in: their messages may come before the answer to our join. */
  readonly joining = new Set<string>();
  /** Told after something was committed. */
  onQueued: (message: QueuedMessage) => void = () => undefined;
  onViewChanged: () => void = () => undefined;
  onOutgoing: () => void = () => undefined;
  /** Commits the rows of a delivery that has its final outcome: where there are tasks, together with theirs. */
  commitOutcome: (parcel: Parcel, final: Final, rows: readonly RowWrite[]) => Promise<unknown> = (
    _parcel,
    _final,
    rows,
  ) => this.parts.store.commit({ appends: [], rows }, "result");
  onSwarmGone: (swarmId: string) => void = () => undefined;
  #pair: KeyPair;
  #formerPairs: readonly KeyPair[];
  /** What waits at each place; set by who delivers. */
  backlog: Pick<Backlog, "isFull" | "add"> = { isFull: () => false, add: () => undefined };
  #keys = new LRUCache<string, PublicKey>({ max: 4_096 });
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: CoreParts) {
    this.parts = parts;
    this.#pair = parts.pair;
    this.#formerPairs = parts.formerPairs ?? [];
  }

  get id(): string {
    return this.parts.identity.agentId;
  }

  get pair(): KeyPair {
    return this.#pair;
  }

  /** Who signs what goes out. */
  get signer(): Signer {
    const { agentId, endpoint } = this.parts.identity;
    return { agentId, endpoint, pair: this.#pair, seals: this.parts.options.sealMessages };
  }

  /** The same with each of the keys before this one. */
  get formerSigners(): readonly Signer[] {
    return this.#formerPairs.map((pair) => ({ ...this.signer, pair }));
  }

  /** From now on everything is signed with this key. */
  usePair(pair: KeyPair): void {
    this.#formerPairs = [this.#pair, ...this.#formerPairs];
    this.#pair = pair;
  }

  get now(): number {
    return this.parts.clock.now();
  }

  get self(): Member {
    const { agentId, endpoint } = this.parts.identity;
    return { agentId, endpoint, publicKey: this.#pair.publicKey.text, joinedAt: this.now };
  }

  /** At no moment is the view empty for those who look. */
  async load(): Promise<void> {
    const known = await this.parts.store.mesh.view();
    this.view.clear();
    for (const write of known) this.view.apply(write);
  }

  /** The parsed key; parsing costs as much as a third of a verification, so the last few thousand are kept. */
  keyOf(text: string): PublicKey | undefined {
    const known = this.#keys.get(text);
    if (known !== undefined) return known;
    const parsed = parsePublicKey(text);
    if ("reason" in parsed) return undefined;
    this.#keys.set(text, parsed.key);
    return parsed.key;
  }

  /**
   * Changes of membership happen one after another: each is decided on what the one before committed. Messages that
   * change no membership need not wait here.
   */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#last.then(work, work);
    this.#last = run.catch(() => undefined);
    return run;
  }

  /** The rows that send something: its log, and a place in the outbox for each recipient. */
  outgoingRows(
    swarmId: string,
    outgoing: Outgoing,
  ): { readonly messageId: string; readonly rows: RowWrite[] } {
    const { ids, options } = this.parts;
    const { recipient, type, content, extras, to, completes, origin, signNow = false, mail } = outgoing;
    const messageId = outgoing.messageId ?? ids.uuid();
    const sentAt = this.now;
    const draft: Draft = {
      message_id: messageId,
      swarm_id: swarmId,
      recipient,
      type,
      content,
      ...(extras && { extras }),
    };
    const signed = signNow ? signDraft(draft, this.signer, sentAt) : undefined;
    const rows = to.flatMap((member): RowWrite[] => {
      const recipientId = member.agentId;
      const parcel: Parcel = {
        draft,
        sentAt,
        recipientId,
        endpoint: member.endpoint,
        ...(completes && { completes }),
        ...(signed && { signed }),
        ...(mail && { mail }),
      };
      const target = placeOf(member);
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
        lane: completes === undefined ? `${swarmId}/${recipientId}` : offersLane(swarmId),
        target,
        payload: JSON.stringify(parcel),
        createdAt: sentAt,
        dueAt: sentAt,
        deadlineAt: sentAt + options.deadline,
        dedupeKey: `${messageId}/${recipientId}`,
      };
      return [log, enqueue(item)];
    });
    return { messageId, rows };
  }

  /** Whether nothing more may be sent to a member. @param before what is about to be sent to its place as well */
  isFull(member: Member, before = 0): boolean {
    return this.backlog.isFull(placeOf(member), this.parts.options.maxWaiting - before);
  }

  /** Commits a change and the messages that tell of it, and lets the view follow. */
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

  /** Applies what was committed. */
  follow(writes: readonly RowWrite[]): void {
    const changes = writes.filter(isViewWrite);
    if (changes.length === 0) return;
    for (const write of changes) {
      this.view.apply(write);
      if (write.kind === "mesh.swarm.remove") this.onSwarmGone(write.swarmId);
    }
    this.onViewChanged();
  }

  /** An operation of ours: what it changes, whom it tells, and the note of it for those who watch here. */
  async carryOut(swarmId: string, { writes, announcements, event }: Operation): Promise<void> {
    await this.commit(writes, swarmId, announcements);
    if (event !== undefined) await this.note(swarmId, event);
  }

  /**
   * ASP: Lifecycle Event Notifications. A note in our own inbox, apart from what it tells of: when it cannot be
   * stored, the operation stands all the same.
   */
  async note(swarmId: string, event: LifecycleEvent): Promise<void> {
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
      const text = `${action} of ${agentId} at ${formatTime(receivedAt)} could not be noted`;
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

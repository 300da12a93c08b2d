/** Takes parcels out of the outbox: signs, sends, and turns the answer into an outcome. */
import { type BackoffPolicy, NetError } from "../net/index.js";
import {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  type Final,
  type OutboxFinish,
  type StoredItem,
} from "../outbox/index.js";
import { MESH_QUEUE, type MeshCore, type Parcel } from "./core.js";
import { completeTransfer } from "./membership/operations.js";
import { readSystemContent } from "./membership/system-content.js";
import { signDraft } from "./message/build.js";
import { isRecord } from "./message/extras.js";
import type { MeshMessage } from "./message/types.js";
import { createPeers } from "./peers.js";
import { verifySignature } from "./signature.js";
import type { MeshRowWrite } from "./writes.js";

const BACKOFF: BackoffPolicy = { base: 1_000, factor: 2, cap: 600_000, jitter: 0.25 };
/** Statuses that say "not now". */
const LATER = new Set([408, 425, 429, 500, 502, 503, 504]);

export function createDelivery(core: MeshCore): Dispatcher {
  const { store, clock, report, random } = core.parts;
  const patience = new Patience(core);
  const dispatcher = new Dispatcher(
    { store, reads: store.outbox, clock, report, ...(random !== undefined && { random }) },
    {
      queue: MESH_QUEUE,
      backoff: BACKOFF,
      handler: (attempt) => deliver(core, attempt, patience),
      settle: async (item, final, finish) => {
        const work = () => settle(core, item, final, finish);
        // A mastership that is handed over is a change of membership like any other.
        await (parcelOf(item).completes === undefined ? work() : core.exclusive(work));
        patience.end(item.id);
      },
    },
  );
  core.backlog = dispatcher.backlog;
  return dispatcher;
}

export function parcelOf(item: StoredItem): Parcel {
  // Our own writing, checked by the compiler where it was made.
  return JSON.parse(item.payload);
}

/**
 * A lifecycle message may have overtaken the one that gives it authority (a new master's first kick, say), so a peer's
 * no is not the last word for some time. It runs from the first no: before that the peer may have been away for days.
 */
class Patience {
  readonly #core: MeshCore;
  readonly #since = new Map<string, number>();

  constructor(core: MeshCore) {
    this.#core = core;
  }

  isLeft(itemId: string): boolean {
    const { now, parts } = this.#core;
    const since = this.#since.get(itemId) ?? now;
    this.#since.set(itemId, since);
    return now - since < parts.options.lifecyclePatience;
  }

  end(itemId: string): void {
    this.#since.delete(itemId);
  }
}

async function deliver(
  core: MeshCore,
  { item, signal }: Attempt,
  patience: Patience,
): Promise<AttemptResult> {
  const { http, options } = core.parts;
  const parcel = parcelOf(item);
  const { draft, recipientId } = parcel;
  // A member that moved is called where it is now; one that is no longer a member where it was.
  const swarm = core.view.swarms.get(draft.swarm_id);
  const member = swarm?.members.get(recipientId);
  if (parcel.completes !== undefined && (swarm?.master !== core.id || member === undefined)) {
    return { kind: "refused", reason: "the swarm has another master by now, or the member is gone" };
  }
  if (swarm !== undefined && saysThatWeLeft(parcel) && swarm.joinedAt >= parcel.sentAt) {
    return { kind: "refused", reason: "this agent has joined again since" };
  }
  const endpoint = member?.endpoint ?? parcel.endpoint;
  const signedAt = core.now - parcel.sentAt < options.resignAfter ? parcel.sentAt : core.now;
  const message =
    parcel.signed === undefined
      ? signDraft(draft, core.signer, signedAt)
      : refreshed(core, parcel.signed, parcel);
  try {
    const peers = createPeers(http, core.id, () => core.now);
    let answer = await peers.post(endpoint, "message", message, signal);
    if (parcel.signed === undefined) {
      // It waits before the news of our new key: the peer knows an older one.
      for (const former of core.formerSigners) {
        if (answer.status !== 401) break;
        answer = await peers.post(endpoint, "message", signDraft(draft, former, signedAt), signal);
      }
    }
    if (answer.status === 200 || answer.status === 202) {
      const unconfirmed = parcel.completes !== undefined && !saysAccepted(answer.value);
      return unconfirmed ? { kind: "refused", reason: NOT_TAKEN_OVER } : { kind: "delivered" };
    }
    if (LATER.has(answer.status)) {
      const after = answer.retryAfter;
      return {
        kind: "retry",
        reason: answer.complaint,
        answered: true,
        ...(after !== undefined && { after }),
      };
    }
    const early = draft.type === "system" && (answer.status === 403 || answer.status === 404);
    if (early && patience.isLeft(item.id)) {
      return { kind: "retry", reason: answer.complaint, answered: true };
    }
    return { kind: "refused", reason: answer.complaint };
  } catch (error) {
    if (!(error instanceof NetError) || error.code === "aborted") throw error;
    const hopeless = ["invalid_url", "insecure_url", "blocked_address"].includes(error.code);
    return hopeless ? { kind: "refused", reason: error.message } : { kind: "retry", reason: error.message };
  }
}

function saysThatWeLeft({ draft }: Parcel): boolean {
  const reading = draft.type === "system" ? readSystemContent(draft.content) : undefined;
  return reading !== undefined && "content" in reading && reading.content.action === "member_left";
}

/** The same with a new timestamp, when it is due and the key that signed it is still there. */
function refreshed(core: MeshCore, signed: MeshMessage, { draft, sentAt }: Parcel): MeshMessage {
  if (core.now - sentAt < core.parts.options.resignAfter) return signed;
  const signer = [core.signer, ...core.formerSigners].find(
    ({ pair }) => verifySignature(signed, signed.signature, pair.publicKey) === "valid",
  );
  return signer === undefined ? signed : signDraft(draft, signer, core.now);
}

/** Some peers store a transfer like any message: a swarm handed to one of them would have no master that acts. */
const NOT_TAKEN_OVER =
  "it took the message, but did not answer that it is the master now; its software may not know transfers";

function saysAccepted(value: unknown): boolean {
  return isRecord(value) && value.status === "accepted";
}

async function settle(core: MeshCore, item: StoredItem, final: Final, finish: OutboxFinish): Promise<void> {
  const parcel = parcelOf(item);
  const { draft, recipientId, completes } = parcel;
  const isDelivered = final.outcome === "delivered";
  const mark: MeshRowWrite = {
    kind: "mesh.sent.mark",
    messageId: draft.message_id,
    recipientId,
    status: isDelivered ? "delivered" : "failed",
    at: final.at,
    ...(final.reason !== undefined && { error: final.reason }),
  };
  const completed =
    completes !== undefined && isDelivered
      ? completeTransfer(core.view, draft.swarm_id, core.id, completes.transferTo)
      : undefined;
  const { writes = [], announcements = [], event } = completed ?? {};
  const sends = announcements.flatMap((one) => core.outgoingRows(draft.swarm_id, one).rows);
  await core.commitOutcome(parcel, final, [finish, mark, ...writes, ...sends]);
  core.follow(writes);
  if (sends.length > 0) core.onOutgoing();
  if (event !== undefined) void core.note(draft.swarm_id, event);
  if (isDelivered) return;
  core.parts.report({
    code: "mesh_undelivered",
    message: `message ${draft.message_id} to ${recipientId} was not delivered: ${final.reason ?? final.outcome}`,
  });
}

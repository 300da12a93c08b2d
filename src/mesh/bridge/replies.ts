/** Sends the finish message of a task to the peer whose message it answers, once (decision G2). */

import { type RetryPolicy, retry } from "../../base/index.js";
import { outcomeOf, type RoundOutcome, type Runtime, type Store } from "../../engine/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { MeshAgent } from "../agent.js";
import { cutTo } from "../message/check.js";
import { LIMITS } from "../message/types.js";
import type { QueuedMessage } from "../messages.js";
import { derivedUuid } from "../send/message.js";
import type { QueueStatusChange } from "../writes.js";

/** Between retries while there is no capacity for a task or the store fails. */
export const RETRY_DELAYS: RetryPolicy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0.25 };

export interface RepliesParts {
  readonly agent: MeshAgent;
  readonly runtime: Runtime;
  readonly store: { readonly commit: Store["commit"] };
  readonly signal: AbortSignal;
  /** Called when a round has ended: there may be capacity for another task. */
  readonly onEnded: () => void;
}

export class Replies {
  readonly #parts: RepliesParts;
  readonly #watching = new Map<string, Promise<void>>();

  constructor(parts: RepliesParts) {
    this.#parts = parts;
  }

  /** Waits for the end of the round that the message began; after a restart the end is found in the journal. */
  watch(message: QueuedMessage): void {
    if (this.#watching.has(message.id)) return;
    const watched = this.#sendInTheEnd(message).finally(() => this.#watching.delete(message.id));
    this.#watching.set(message.id, watched);
  }

  /** Resolves when no message is watched, after the signal aborted. */
  async stopped(): Promise<void> {
    await Promise.allSettled(this.#watching.values());
  }

  /** Retries until the reply is stored, however long the store fails. */
  async #sendInTheEnd(message: QueuedMessage): Promise<void> {
    const { agent, signal } = this.#parts;
    const { clock, random = Math.random, report } = agent.context.parts;
    if (signal.aborted) return;
    const classify = (cause: unknown, failures: number) => {
      const text = `the reply to ${message.messageId} cannot be sent yet`;
      if (failures === 1) report({ code: "mesh_bridge_failed", message: text, cause });
      return "retry" as const;
    };
    await retry(() => this.#send(message), { policy: RETRY_DELAYS, clock, random, signal, classify }).catch(
      () => {
        // Closing: the next process sends it.
      },
    );
  }

  async #send(message: QueuedMessage): Promise<void> {
    const { agent, store, onEnded } = this.#parts;
    const outcome = await this.#outcomeOf(message);
    if (outcome === undefined) return;
    onEnded();
    const text = fitting(answerText(outcome));
    const reply = agent.replyRows(message, text, derivedUuid(`reply/${agent.id}/${message.id}`)) ?? [];
    const done: QueueStatusChange = {
      kind: "mesh.queue.mark",
      id: message.id,
      from: ["processing"],
      status: "completed",
      at: agent.context.now,
    };
    try {
      await store.commit({ appends: [], rows: [done, ...reply] }, "result");
      agent.wake();
    } catch (error) {
      if (!(error instanceof RowConflictError)) throw error;
    }
  }

  async #outcomeOf({ taskKey = "" }: QueuedMessage): Promise<RoundOutcome | undefined> {
    const [key = "", number = "0"] = taskKey.split("#");
    const { runtime, signal } = this.#parts;
    for await (const { entry } of runtime.follow(key, { after: Number(number), signal })) {
      const outcome = outcomeOf(entry);
      // A pause is not the end: a local user has to answer first.
      if (outcome !== undefined && outcome.status !== "paused") return outcome;
    }
    return undefined;
  }
}

function answerText({ status, message, error }: RoundOutcome): string {
  if (status === "completed") return message.message.body || "done";
  return `The task ended as ${status}${error === undefined ? "" : `: ${error.message}`}`;
}

const CUT = "\n[truncated: the answer exceeds the size of a message]";

/** Makes a text that peers accept: replaces lone surrogates and truncates long texts. */
function fitting(text: string): string {
  const sound = text.replaceAll(/\p{Surrogate}/gu, "\u{FFFD}");
  const limit = LIMITS.contentCharacters;
  return cutTo(sound, limit) === sound ? sound : `${cutTo(sound, limit - CUT.length)}${CUT}`;
}

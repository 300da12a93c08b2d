/** The way back of decisions G2: the finish message of a task goes to the peer whose message it answers, once. */
import { RowConflictError, type Store } from "../../engine/ports.js";
import { type Outcome, outcomeOf, type Runtime } from "../../engine/runtime/index.js";
import { backoffDelay, pauseFor } from "../../net/index.js";
import { cutTo } from "../message/check.js";
import { LIMITS } from "../message/types.js";
import type { MeshNode } from "../node.js";
import type { QueuedMessage } from "../queue.js";
import { derivedUuid } from "../sending.js";
import type { QueueMark } from "../writes.js";
import { PAUSES } from "./pauses.js";

export interface AnswersParts {
  readonly node: MeshNode;
  readonly runtime: Runtime;
  readonly store: { readonly commit: Store["commit"] };
  readonly signal: AbortSignal;
  /** Told when a round has ended: there may be room for another task. */
  readonly onEnded: () => void;
}

export class Answers {
  readonly #parts: AnswersParts;
  readonly #watching = new Map<string, Promise<void>>();

  constructor(parts: AnswersParts) {
    this.#parts = parts;
  }

  /** Waits for the end of the round that the message began; after a restart it is found in the journal. */
  watch(message: QueuedMessage): void {
    if (this.#watching.has(message.id)) return;
    const watched = this.#sendInTheEnd(message).finally(() => this.#watching.delete(message.id));
    this.#watching.set(message.id, watched);
  }

  /** Resolves when nothing is watched any more: after the signal. */
  async stopped(): Promise<void> {
    await Promise.allSettled(this.#watching.values());
  }

  /** What was asked is answered however long the store is in trouble. */
  async #sendInTheEnd(message: QueuedMessage): Promise<void> {
    const { node, signal } = this.#parts;
    const { clock, random = Math.random, report } = node.core.parts;
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        await this.#send(message);
        return;
      } catch (cause) {
        if (signal.aborted) return;
        const text = `the answer to ${message.messageId} cannot be sent yet`;
        if (failures === 1) report({ code: "mesh_bridge_failed", message: text, cause });
        await pauseFor(clock, backoffDelay(PAUSES, failures, random), signal);
      }
    }
  }

  async #send(message: QueuedMessage): Promise<void> {
    const { node, store, onEnded } = this.#parts;
    const outcome = await this.#outcomeOf(message);
    if (outcome === undefined) return;
    onEnded();
    const text = fitting(answerText(outcome));
    const reply = node.replyRows(message, text, derivedUuid(`reply/${node.id}/${message.id}`)) ?? [];
    const done: QueueMark = {
      kind: "mesh.queue.mark",
      id: message.id,
      from: ["processing"],
      status: "completed",
      at: node.core.now,
    };
    try {
      await store.commit({ appends: [], rows: [done, ...reply] }, "result");
      node.wake();
    } catch (error) {
      if (!(error instanceof RowConflictError)) throw error;
    }
  }

  async #outcomeOf({ taskKey = "" }: QueuedMessage): Promise<Outcome | undefined> {
    const [key = "", number = "0"] = taskKey.split("#");
    const { runtime, signal } = this.#parts;
    for await (const { entry } of runtime.follow(key, { after: Number(number), signal })) {
      const outcome = outcomeOf(entry);
      // A pause is not the end: somebody here has to be asked first.
      if (outcome !== undefined && outcome.status !== "paused") return outcome;
    }
    return undefined;
  }
}

function answerText({ status, message, error }: Outcome): string {
  if (status === "completed") return message.message.body || "done";
  return `The task ended as ${status}${error === undefined ? "" : `: ${error.message}`}`;
}

const CUT = "\n[cut here: the answer is longer than a message can be]";

/** What a peer would refuse never arrives: half a character is replaced, and of a long text the beginning is said. */
function fitting(text: string): string {
  const sound = text.replaceAll(/\p{Surrogate}/gu, "\u{FFFD}");
  const limit = LIMITS.contentCharacters;
  return cutTo(sound, limit) === sound ? sound : `${cutTo(sound, limit - CUT.length)}${CUT}`;
}

/**
 * Deduplicates messages by id. The id is committed together with the message's effect, so that after a crash either
 * both exist or neither.
 */
import { Once } from "../../base/index.js";
import { digest } from "../../base/node.js";
import type { InstanceId, JournalLocation, RowsFor } from "../../engine/index.js";
import type { A2aStore, MessagePut, StoredMessage } from "../../store/index.js";
import { type Message, RequestMalformedError } from "./sdk.js";

export type MessageLocation = Pick<StoredMessage, "key" | "taskId" | "number">;

export class SentMessages {
  readonly #state: A2aStore;
  readonly #once = new Once<MessageLocation, MessageLocation>({ recall: async (location) => location });

  constructor(state: A2aStore) {
    this.#state = state;
  }

  /**
   * Posts the message and returns its location. A repeated message is not posted again. A call during the first one
   * joins it.
   */
  async once(
    instance: InstanceId,
    message: Message,
    post: (rows: RowsFor) => Promise<JournalLocation>,
  ): Promise<MessageLocation> {
    const { messageId, contextId, taskId, parts } = message;
    if (messageId === "") return post([]);
    const hash = digest({ contextId, taskId, parts });
    const row = ({ key, taskId: id, number }: JournalLocation): MessagePut => ({
      kind: "a2a.message.put",
      instance,
      messageId,
      kept: { key, taskId: id, number, hash },
    });
    const { result } = await this.#once.run({
      key: JSON.stringify([instance.role, instance.id, messageId]),
      digest: hash,
      reused: () =>
        new RequestMalformedError(`messageId '${messageId}' was used for another message; use a new one`),
      find: async () => {
        const kept = await this.#state.storedMessage(instance, messageId);
        return kept && { digest: kept.hash, reference: kept };
      },
      write: () => post((at) => [row(at)]),
    });
    return result;
  }
}

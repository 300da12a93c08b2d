/**
 * A message that a caller sends twice is one message: its id is committed together with what it did, so that also
 * after a crash either both are there or neither.
 */
import type { InstanceId } from "../engine/ports.js";
import type { PostedAt, RowsFor } from "../engine/runtime/index.js";
import { hashOf } from "../swarm/hash.js";
import { type Message, RequestMalformedError } from "./sdk.js";
import type { A2aState, KeptMessage, MessagePut } from "./state.js";

export type PlaceOfMessage = Pick<KeptMessage, "key" | "taskId" | "number">;

interface UnderWay {
  readonly hash: string;
  readonly place: Promise<PlaceOfMessage>;
}

export class SentMessages {
  readonly #state: A2aState;
  readonly #underWay = new Map<string, UnderWay>();

  constructor(state: A2aState) {
    this.#state = state;
  }

  /** Posts the message, unless it was: then where it is. A second call while the first is under way joins it. */
  async once(
    instance: InstanceId,
    message: Message,
    post: (rows: RowsFor) => Promise<PostedAt>,
  ): Promise<PlaceOfMessage> {
    const { messageId, contextId, taskId, parts } = message;
    if (messageId === "") return post([]);
    const hash = hashOf({ contextId, taskId, parts });
    const name = JSON.stringify([instance.role, instance.id, messageId]);
    const known = this.#underWay.get(name) ?? (await this.#state.keptMessage(instance, messageId));
    // Asked twice: what was kept is read from the store, and another call may have begun meanwhile.
    const first = known ?? this.#underWay.get(name);
    if (first !== undefined) {
      if (first.hash !== hash) throw reused(messageId);
      return "place" in first ? first.place : first;
    }
    const row = ({ key, taskId: id, number }: PostedAt): MessagePut => ({
      kind: "a2a.message.put",
      instance,
      messageId,
      kept: { key, taskId: id, number, hash },
    });
    const place = post((at) => [row(at)]).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, { hash, place });
    return place;
  }
}

function reused(messageId: string): RequestMalformedError {
  return new RequestMalformedError(`messageId '${messageId}' is that of another message: use a new one`);
}

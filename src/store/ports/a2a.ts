/** What A2A stores beside the journals. Rows are removed with their task. */
import type { InstanceId } from "../../engine/index.js";
import type { JournalKey, RowWrite } from "../../journal/index.js";

/** The journal entry that a caller's message became. */
export interface StoredMessage {
  readonly key: JournalKey;
  readonly taskId: string;
  readonly number: number;
  /** Hash of what the caller sent, to detect the same id with other content. */
  readonly hash: string;
}

/** State of the conversation with an A2A agent. */
export interface A2aContext {
  readonly contextId: string;
  /** The agent's task while it waits for input; otherwise empty. */
  readonly taskId: string;
}

/** Committed together with the message; rejected when the caller has already sent one with this id. */
export interface MessagePut extends RowWrite {
  readonly kind: "a2a.message.put";
  readonly instance: InstanceId;
  readonly messageId: string;
  readonly kept: StoredMessage;
}

export interface ThreadPut extends RowWrite {
  readonly kind: "a2a.thread.put";
  readonly task: JournalKey;
  /** `name@alias` */
  readonly address: string;
  readonly thread: A2aContext;
  /** The sent message that led here, if the agent has processed it: it must not be sent again. */
  readonly settles?: string;
}

export type A2aRowWrite = MessagePut | ThreadPut;

export interface A2aStore {
  storedMessage(instance: InstanceId, messageId: string): Promise<StoredMessage | undefined>;
  thread(task: JournalKey, address: string): Promise<A2aContext | undefined>;
  /** Whether the agent has processed this sent message. */
  isSettled(messageId: string): Promise<boolean>;
}

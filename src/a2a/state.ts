/** What A2A keeps beside the journals. The store implements it; all of it goes when its task is removed. */
import type { InstanceId, JournalKey, RowWrite, Store } from "../engine/ports.js";
import type { OutboxReads } from "../outbox/index.js";

/** What a caller's message became: the entry of a journal that it is. */
export interface KeptMessage {
  readonly key: JournalKey;
  readonly taskId: string;
  readonly number: number;
  /** Of what the caller sent, to recognise the same id with another content. */
  readonly hash: string;
}

/** Where our conversation with an A2A agent stands. */
export interface Thread {
  readonly contextId: string;
  /** The agent's task, while it waits for more; else empty. */
  readonly taskId: string;
}

/** Committed together with the message itself; refused when the caller has sent one with this id before. */
export interface MessagePut extends RowWrite {
  readonly kind: "a2a.message.put";
  readonly instance: InstanceId;
  readonly messageId: string;
  readonly kept: KeptMessage;
}

export interface ThreadPut extends RowWrite {
  readonly kind: "a2a.thread.put";
  readonly task: JournalKey;
  /** `name@alias` */
  readonly address: string;
  readonly thread: Thread;
  /** The message of ours that led here, if the agent has dealt with it: it is not to be sent again. */
  readonly settles?: string;
}

export type A2aRowWrite = MessagePut | ThreadPut;

export interface A2aState {
  keptMessage(instance: InstanceId, messageId: string): Promise<KeptMessage | undefined>;
  thread(task: JournalKey, address: string): Promise<Thread | undefined>;
  /** Whether an agent has dealt with this message of ours. */
  isSettled(messageId: string): Promise<boolean>;
}

export type A2aStore = Pick<Store, "commit"> & { readonly a2a: A2aState; readonly outbox: OutboxReads };

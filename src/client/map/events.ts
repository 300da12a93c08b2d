/** Events of conversations, by type. */
import type {
  Conversation,
  ConversationTurn,
  OpenCall,
  Participant,
  Permissions,
  Thread,
} from "../conversations-wire.js";

/** The data of each type of event. */
export interface ConversationEventData {
  readonly "mail.created": Pick<Conversation, "type" | "subject" | "createdBy">;
  readonly "mail.closed": { readonly closedBy: string; readonly reason?: string };
  readonly "mail.participant.joined": { readonly participant: Participant };
  readonly "mail.participant.left": { readonly participantId: string; readonly reason?: string };
  readonly "mail.turn.added": { readonly turn: ConversationTurn };
  readonly "mail.turn.updated": { readonly turnId: string; readonly status: ConversationTurn["status"] };
  readonly "mail.thread.created": { readonly thread: Thread };
  readonly "mail.summary.generated": { readonly summary: string };
  /** A paused task has `openCalls`, the calls whose results it waits for, and `approvals`, those that need approval. */
  readonly "mailroom.conversation.status": {
    readonly status: Conversation["status"];
    readonly reason?: string;
    readonly openCalls?: readonly OpenCall[];
    readonly approvals?: readonly OpenCall[];
  };
  readonly "mailroom.participant.changed": {
    readonly participantId: string;
    readonly role: Participant["role"];
    readonly permissions: Permissions;
  };
  readonly "mailroom.conversation.deleted": object;
}

/** The types of events. */
export type ConversationEventType = keyof ConversationEventData;

/**
 * An event of a conversation. Test `type` to get the type of `data`.
 * @example
 * ```ts
 * for await (const event of await client.follow()) {
 *   if (event.type === "mail.turn.added") console.log(event.data.turn.content);
 * }
 * ```
 */
export type ConversationEvent = {
  [Type in ConversationEventType]: {
    readonly id: string;
    readonly type: Type;
    readonly timestamp: number;
    /** The participant that caused it. */
    readonly source: string;
    readonly data: ConversationEventData[Type] & { readonly conversationId: string };
  };
}[ConversationEventType];

import type { ConversationEntry } from "./entries.js";
import { turnOf } from "./events.js";
import type { MailFacts } from "./filter.js";
import type { ConversationState } from "./state.js";

/** The values that `filter.mail` compares, for every kind of entry [MAP-EVNT-02]. */
export function mailFactsOf(state: ConversationState, entry: ConversationEntry): MailFacts {
  const conversationId = state.header.id;
  switch (entry.t) {
    case "created":
      return { conversationId, threadIds: [], participantId: entry.conversation.createdBy };
    case "joined":
      return { conversationId, threadIds: [], participantId: entry.participant.id };
    case "left":
    case "member":
      return { conversationId, threadIds: [], participantId: entry.participantId };
    case "closed":
      return { conversationId, threadIds: [], participantId: entry.by };
    case "turn": {
      const { threadId, participant, contentType } = entry.turn;
      return {
        conversationId,
        threadIds: threadId === undefined ? [] : [threadId],
        participantId: participant,
        contentType,
      };
    }
    case "turn_updated": {
      const turn = turnOf(state, entry);
      if (turn === undefined) return { conversationId, threadIds: [] };
      return {
        conversationId,
        threadIds: turn.threadId === undefined ? [] : [turn.threadId],
        participantId: turn.author,
        contentType: turn.contentType,
      };
    }
    case "thread": {
      const { id, parentThreadId, createdBy } = entry.thread;
      return {
        conversationId,
        threadIds: parentThreadId === undefined ? [id] : [id, parentThreadId],
        participantId: createdBy,
      };
    }
    case "summary":
    case "status":
      return { conversationId, threadIds: [] };
    default:
      return entry satisfies never;
  }
}

/** The rows that go with entries: only those of membership and status have any. */
import type { ConversationEntry } from "../domain/entries.js";
import { type ConversationState, isClosed, statusAt } from "../domain/state.js";
import type { Conversation } from "../domain/types.js";
import type { ConversationRow, ConversationRowWrite, ListedConversation } from "../ports.js";

export function rowsFor(
  state: ConversationState,
  entries: readonly ConversationEntry[],
): ConversationRowWrite[] {
  const conversation = state.header.id;
  const rows: ConversationRowWrite[] = [];
  let status = false;
  for (const entry of entries) {
    switch (entry.t) {
      case "joined":
        rows.push({
          kind: "conversation.member",
          conversation,
          participant: entry.participant.id,
          active: true,
        });
        break;
      case "left":
        rows.push({
          kind: "conversation.member",
          conversation,
          participant: entry.participantId,
          active: false,
        });
        break;
      case "created":
      case "closed":
      case "status":
        status = true;
        break;
      case "turn":
      case "turn_updated":
      case "thread":
      case "summary":
        break;
      default:
        entry satisfies never;
    }
  }
  return status ? [{ kind: "conversation.put", row: rowOf(state) }, ...rows] : rows;
}

function rowOf(state: ConversationState): ConversationRow {
  const { header, createdAt } = state;
  const { status, at } = statusAt(state, state.number);
  const { space, ...kept } = header;
  return {
    id: header.id,
    space,
    type: header.type,
    status,
    createdAt,
    header: JSON.stringify(kept),
    ...(header.parentConversationId !== undefined && { parentId: header.parentConversationId }),
    ...(isClosed(status) && { closedAt: at }),
  };
}

/** A conversation from its row, and the time of its last entry. */
export function conversationOf(row: ListedConversation, updatedAt: number): Conversation {
  const header: Pick<Conversation, "id" | "type" | "createdBy" | "metadata"> = JSON.parse(row.header);
  return {
    ...header,
    status: row.status,
    participantCount: row.participantCount,
    createdAt: row.createdAt,
    updatedAt,
    ...(row.closedAt !== undefined && { closedAt: row.closedAt }),
  };
}

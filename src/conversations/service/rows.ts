/** The rows that are committed with entries; only membership and status have any. */

import type { ConversationRow, ConversationRowWrite, ListedConversation } from "../ports.js";
import type { ConversationEntry, Reservation } from "../rules/entries.js";
import { type ConversationState, isClosed, statusAt } from "../rules/state.js";
import type { Conversation } from "../rules/types.js";

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
        if (entry.reserves !== undefined) rows.push(reserved(state, entry.reserves));
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
        for (const reservation of entry.reserves ?? []) rows.push(reserved(state, reservation));
        break;
      case "turn_updated":
      case "thread":
      case "summary":
      case "member":
        break;
      default:
        entry satisfies never;
    }
  }
  return status ? [{ kind: "conversation.put", row: rowOf(state) }, ...rows] : rows;
}

function reserved({ header }: ConversationState, reservation: Reservation): ConversationRowWrite {
  return { kind: "map_agent.reserve", space: header.space, ...reservation };
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

/** Builds a conversation from its row and the time of its last entry. */
export function toConversation(row: ListedConversation, updatedAt: number): Conversation {
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

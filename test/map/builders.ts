/** Builders of actors and entries for tests. */
import type { Created, Joined, ThreadCreated, TurnAdded } from "../../src/conversations/rules/entries.js";
import { permissionsFor } from "../../src/conversations/rules/roles.js";
import type {
  Actor,
  MailCapabilities,
  ParticipantRole,
  Permissions,
  Visibility,
} from "../../src/conversations/rules/types.js";

const ALL_CAPABILITIES: MailCapabilities = {
  canCreate: true,
  canJoin: true,
  canInvite: true,
  canViewHistory: true,
  canCreateThreads: true,
};

export function actorOf(
  ids: readonly [string, ...string[]] | string,
  options: { observer?: boolean; capabilities?: Partial<MailCapabilities> } = {},
): Actor {
  const identities = typeof ids === "string" ? [ids] : ids;
  return {
    acting: identities[0] ?? "",
    identities: new Set(identities),
    observer: options.observer ?? false,
    capabilities: { ...ALL_CAPABILITIES, ...options.capabilities },
    space: "",
  };
}

export function createdEntry(founders: number, at = 1): Created {
  return {
    t: "created",
    v: 1,
    at,
    founders,
    conversation: { id: "conv-1", type: "mixed", createdBy: "ann", metadata: {}, space: "" },
  };
}

export function joinedEntry(
  id: string,
  role: ParticipantRole,
  permissions: Permissions = permissionsFor(role),
  at = 1,
): Joined {
  return { t: "joined", at, by: id, participant: { id, type: "agent", role, joinedAt: at, permissions } };
}

export function turnEntryOf(
  id: string,
  participant: string,
  options: {
    visibility?: Visibility;
    internal?: boolean;
    threadId?: string;
    text?: string;
    at?: number;
  } = {},
): TurnAdded {
  const { visibility, internal = false, threadId, text = id, at = 1 } = options;
  return {
    t: "turn",
    at,
    turn: {
      id,
      conversationId: "conv-1",
      participant,
      timestamp: at,
      contentType: "text",
      content: { text },
      source: { type: "explicit", method: "mail/turn" },
      status: "complete",
      metadata: internal ? { internal: true } : {},
      ...(visibility !== undefined && { visibility }),
      ...(threadId !== undefined && { threadId }),
    },
  };
}

export function threadEntryOf(id: string, rootTurnId: string, at = 1): ThreadCreated {
  return {
    t: "thread",
    at,
    depth: 1,
    thread: { id, conversationId: "conv-1", rootTurnId, createdAt: at, createdBy: "ann" },
  };
}

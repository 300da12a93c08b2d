/** The parameters of the thirteen `mail/*` methods ([MAP-METH-01] to [MAP-METH-13]), parsed once on arrival. */
import { z } from "zod";
import { MapError } from "./errors.js";
import { roughSize } from "./size.js";
import { CONVERSATION_STATUSES, CONVERSATION_TYPES, HISTORY_ACCESS, PARTICIPANT_ROLES } from "./types.js";

/** The largest page, in turns. Larger limits are lowered to this. */
export const MAX_PAGE = 500;
/** A page ends early, with `hasMore`, at about this many bytes: server and reader have to hold it. */
export const MAX_PAGE_BYTES = 1024 * 1024;
export const DEFAULT_PAGE = 50;

const id = z.string().min(1).max(256);
const text = z.string().max(100_000);
/** Bounded because it is held in memory with the conversation. */
const subject = z.string().max(10_000);
const metadata = z.record(z.string(), z.unknown());
const contentType = z.string().max(256);
const cursor = z.string().max(1024);
const limit = z
  .int()
  .min(1)
  .transform((wanted) => Math.min(wanted, MAX_PAGE));
const time = z.number();
const role = z.enum(PARTICIPANT_ROLES);
const contentTypes = z.array(contentType).max(100);

const visibility = z.discriminatedUnion("type", [
  z.object({ type: z.literal("all") }),
  z.object({ type: z.literal("participants"), ids: z.array(id).min(1).max(1000) }),
  z.object({ type: z.literal("role"), roles: z.array(role).min(1).max(PARTICIPANT_ROLES.length) }),
  z.object({ type: z.literal("private") }),
]);

const permissions = z.object({
  canSend: z.boolean().optional(),
  canObserve: z.boolean().optional(),
  canInvite: z.boolean().optional(),
  canRemove: z.boolean().optional(),
  canCreateThreads: z.boolean().optional(),
  canSeeInternal: z.boolean().optional(),
  historyAccess: z.enum(HISTORY_ACCESS).optional(),
});

const invited = z.object({ id, role: role.optional(), permissions: permissions.optional() });

/** `actAs` selects another of the caller's own ids (REF-32). */
const callMeta = z.object({ actAs: id.optional() }).optional();

const common = { _meta: callMeta };
const inConversation = { conversationId: id, _meta: callMeta };

/** Approximate limit in bytes for free-form fields that are held in memory. */
const MAX_HELD = 16 * 1024;
const TOO_LARGE = `is larger than ${MAX_HELD} bytes`;

function hasBoundedSize(value: unknown): boolean {
  return roughSize(value) <= MAX_HELD;
}

/** @throws MapError INVALID_PARAMS if the value is too large to be held in memory */
export function assertBoundedSize(name: string, value: unknown): void {
  if (hasBoundedSize(value)) return;
  throw new MapError("INVALID_PARAMS", `${name}: ${TOO_LARGE}`, { reason: "too_large", limit: MAX_HELD });
}

/** Any JSON value, including `null`, but it must be present. */
const content = z.unknown().refine((value) => value !== undefined, "is missing");

export const createParams = z
  .object({
    ...common,
    type: z.enum(CONVERSATION_TYPES).optional(),
    subject: subject.optional(),
    parentConversationId: id.optional(),
    parentTurnId: id.optional(),
    initialParticipants: z.array(invited).max(1000).optional(),
    initialTurn: z.object({ contentType, content, visibility: visibility.optional() }).optional(),
    metadata: metadata.refine(hasBoundedSize, TOO_LARGE).optional(),
  })
  .refine(
    ({ parentTurnId, parentConversationId }) =>
      parentTurnId === undefined || parentConversationId !== undefined,
    { message: "parentTurnId requires parentConversationId", path: ["parentTurnId"] },
  );

export const getParams = z.object({
  ...inConversation,
  include: z
    .object({
      participants: z.boolean().optional(),
      /** The `participantsCursor` of an earlier answer, for the participants after it. */
      participantsAfter: id.optional(),
      threads: z.boolean().optional(),
      recentTurns: limit.optional(),
      stats: z.boolean().optional(),
    })
    .optional(),
});

export const listParams = z.object({
  ...common,
  filter: z
    .strictObject({
      type: z.array(z.enum(CONVERSATION_TYPES)).max(100).optional(),
      status: z.array(z.enum(CONVERSATION_STATUSES)).max(100).optional(),
      participantId: id.optional(),
      createdAfter: time.optional(),
      createdBefore: time.optional(),
      parentConversationId: id.optional(),
    })
    .optional(),
  limit: limit.optional(),
  cursor: cursor.optional(),
  /** An addition to the protocol: `desc` begins with the newest. */
  order: z.enum(["asc", "desc"]).optional(),
});

/** `status` is an addition to the protocol. */
export const closeParams = z.object({
  ...inConversation,
  reason: text.optional(),
  status: z.enum(["completed", "failed"]).optional(),
});

/** For `mail/reopen`, `mailroom/pause`, `mailroom/archive` and `mailroom/delete`. */
export const statusParams = z.object({ ...inConversation, reason: text.optional() });

export const memberParams = z.object({
  ...inConversation,
  participantId: id,
  role: role.optional(),
  permissions: permissions.optional(),
});

export const turnUpdateParams = z.object({
  ...inConversation,
  turnId: id,
  status: z.enum(["streaming", "complete", "failed"]),
});

export const presenceParams = z.object(inConversation);

export const joinParams = z.object({
  ...inConversation,
  role: role.optional(),
  catchUp: z
    .object({
      /** A time, a turn id, or `recent`. */
      from: z.union([time, id]).optional(),
      limit: limit.optional(),
      includeSummary: z.boolean().optional(),
    })
    .optional(),
});

export const leaveParams = z.object({
  ...inConversation,
  reason: text.optional(),
  participantId: id.optional(),
});

export const inviteParams = z.object({
  ...inConversation,
  participant: invited,
  message: z.string().max(10_000).optional(),
});

export const turnParams = z.object({
  ...inConversation,
  contentType,
  content,
  threadId: id.optional(),
  inReplyTo: id.optional(),
  visibility: visibility.optional(),
  metadata: metadata.optional(),
  /** An addition to the protocol: `mailroom/turn/update` follows. Default `complete`. */
  status: z.enum(["pending", "streaming", "complete"]).optional(),
});

export const turnsListParams = z.object({
  ...inConversation,
  filter: z
    .strictObject({
      threadId: id.optional(),
      includeAllThreads: z.boolean().optional(),
      contentTypes: contentTypes.optional(),
      participantId: id.optional(),
      afterTurnId: id.optional(),
      beforeTurnId: id.optional(),
      afterTimestamp: time.optional(),
      beforeTimestamp: time.optional(),
    })
    .optional(),
  limit: limit.optional(),
  order: z.enum(["asc", "desc"]).optional(),
  /** A turn id; `order` gives the direction. */
  cursor: id.optional(),
});

export const threadCreateParams = z.object({
  ...inConversation,
  rootTurnId: id,
  subject: subject.optional(),
  parentThreadId: id.optional(),
});

export const threadListParams = z.object({
  ...inConversation,
  parentThreadId: id.optional(),
  limit: limit.optional(),
  cursor: cursor.optional(),
});

export const summaryParams = z.object({
  ...inConversation,
  scope: z.object({ fromTurnId: id.optional(), toTurnId: id.optional(), threadId: id.optional() }).optional(),
  regenerate: z.boolean().optional(),
  include: z
    .object({
      keyPoints: z.boolean().optional(),
      keyDecisions: z.boolean().optional(),
      openQuestions: z.boolean().optional(),
      participants: z.boolean().optional(),
    })
    .optional(),
});

export const replayParams = z.object({
  ...inConversation,
  fromTurnId: id.optional(),
  fromTimestamp: time.optional(),
  threadId: id.optional(),
  limit: limit.optional(),
  contentTypes: contentTypes.optional(),
});

/** `meta.mail` of a `map/send`. */
export const mailMeta = z.object({
  conversationId: id,
  threadId: id.optional(),
  inReplyTo: id.optional(),
  visibility: visibility.optional(),
});

export type CreateParams = z.infer<typeof createParams>;
export type GetParams = z.infer<typeof getParams>;
export type ListParams = z.infer<typeof listParams>;
export type CloseParams = z.infer<typeof closeParams>;
export type StatusParams = z.infer<typeof statusParams>;
export type MemberParams = z.infer<typeof memberParams>;
export type TurnUpdateParams = z.infer<typeof turnUpdateParams>;
export type JoinParams = z.infer<typeof joinParams>;
export type LeaveParams = z.infer<typeof leaveParams>;
export type InviteParams = z.infer<typeof inviteParams>;
export type TurnParams = z.infer<typeof turnParams>;
export type TurnsListParams = z.infer<typeof turnsListParams>;
export type ThreadCreateParams = z.infer<typeof threadCreateParams>;
export type ThreadListParams = z.infer<typeof threadListParams>;
export type SummaryParams = z.infer<typeof summaryParams>;
export type ReplayParams = z.infer<typeof replayParams>;

/** @throws MapError INVALID_PARAMS with the path and the problem */
export function parseParams<Schema extends z.ZodType>(schema: Schema, params: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(params ?? {});
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.slice(0, 10).map(({ path, message }) => ({
    path: path.join("."),
    message,
  }));
  const first = problems[0];
  const where = first === undefined || first.path === "" ? "params" : first.path;
  throw new MapError("INVALID_PARAMS", `${where}: ${first?.message ?? "invalid"}`, { problems });
}

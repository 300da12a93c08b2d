/** The outbox and the tokens, for admins. */
import { z } from "zod";

const STATUSES = ["waiting", "delivered", "refused", "expired"] as const;

export const OutboxQuery = z.object({
  queue: z.string().min(1).max(100).exactOptional().meta({ description: "Default: the first queue." }),
  status: z.enum(STATUSES).exactOptional(),
  target: z.string().min(1).max(2048).exactOptional().meta({ description: "Only mail to this target." }),
  after: z.int().min(0).exactOptional().meta({ description: "`next_after` of the previous page." }),
  limit: z.int().min(1).max(500).exactOptional().meta({ description: "Default 100." }),
});

export const ItemPath = z.object({ id: z.string().min(1).max(100) });

export const OutboxItem = z
  .object({
    number: z.int(),
    id: z.string(),
    queue: z.string(),
    target: z.string(),
    status: z.enum(STATUSES),
    created_at: z.number(),
    due_at: z.number(),
    deadline_at: z.number().nullable(),
    attempts: z.int(),
    interrupted: z.boolean().meta({ description: "An attempt began whose result is not known." }),
    reason: z
      .string()
      .nullable()
      .meta({ description: "Why the last attempt failed, or why no other follows." }),
    finished_at: z.number().nullable(),
    task_key: z.string().nullable(),
    message_id: z.string().nullable(),
    to: z.string().nullable(),
    subject: z.string().nullable(),
  })
  .meta({ id: "AdminOutboxItem", description: "Mail to another server, without its content." });

export const OutboxPage = z
  .object({
    queues: z.array(z.string()),
    queue: z.string().nullable().meta({ description: "Null if the server has no queue." }),
    counts: z.object({ waiting: z.int(), delivered: z.int(), refused: z.int(), expired: z.int() }),
    by_target: z.array(z.object({ target: z.string(), waiting: z.int() })),
    items: z.array(OutboxItem).meta({ description: "Oldest first." }),
    next_after: z.int().nullable(),
  })
  .meta({ id: "AdminOutboxPage" });

export const TokenQuery = z.object({
  cursor: z.int().min(0).exactOptional().meta({ description: "`next_cursor` of the previous page." }),
});

export const TokenPath = z.object({ token_id: z.string().min(1).max(100) });

export const TokenList = z
  .object({
    tokens: z.array(
      z
        .object({
          token_id: z.string(),
          role: z.string(),
          id: z.string(),
          label: z.string().nullable(),
          created_at: z.number(),
          last_used_at: z.number().nullable(),
          revoked_at: z.number().nullable(),
          current: z.boolean().meta({ description: "Whether this request used it." }),
        })
        .meta({ id: "TokenInfo", description: "A token without its secret." }),
    ),
    next_cursor: z.int().nullable(),
  })
  .meta({ id: "TokenList" });

export const RevokedToken = z
  .object({ token_id: z.string(), status: z.literal("revoked") })
  .meta({ id: "RevokedToken" });

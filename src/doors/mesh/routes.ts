/** The OpenAPI descriptions of the mesh's routes on the main listener. */
import { z } from "zod";
import { ADMINS, NO_INPUT, PUBLIC, type RawRoute } from "../../extension/index.js";
import { BOX_STATUSES, SENT_STATUSES } from "../../mesh/index.js";
import {
  BatchBody,
  createOperatorHandler,
  InboxQuery,
  OPERATOR_ROUTES,
  OutboxQuery,
  WakeBody,
} from "./operator-routes.js";
import type { ServedMesh } from "./served-mesh.js";

type LocalPath = (typeof OPERATOR_ROUTES)[number]["path"];
type Description = Omit<RawRoute, "method" | "path" | "tag" | "access" | "handle">;

/** Routes that the configuration switches off do not exist. */
export function meshRoutes({ operatorRoutes }: ServedMesh): readonly RawRoute[] {
  const handle = createOperatorHandler(operatorRoutes);
  const isServed = (path: LocalPath): boolean => {
    if (path === "/api/wake") return operatorRoutes.wake !== undefined;
    return path !== "/mesh/github" || operatorRoutes.github !== undefined;
  };
  return OPERATOR_ROUTES.filter(({ path }) => isServed(path)).map(({ method, path, access }) => ({
    ...DESCRIPTIONS[path],
    method,
    path,
    tag: "mesh",
    access: access === "operator" ? ADMINS : PUBLIC,
    handle,
  }));
}

const MeshRefusal = z
  .object({ error: z.object({ code: z.string(), message: z.string() }) })
  .meta({ id: "MeshRefusal", description: "An error of the mesh." });

const InboxMessage = z
  .object({
    message_id: z.string(),
    swarm_id: z.string(),
    sender_id: z.string(),
    recipient_id: z.string().nullable().meta({ description: "Null for the agent's own event records." }),
    message_type: z.string(),
    status: z.enum(BOX_STATUSES),
    received_at: z.string(),
    read_at: z.string().nullable(),
    content_preview: z.string().meta({ description: "The whole content." }),
  })
  .meta({ id: "InboxMessage" });

const WholeInboxMessage = InboxMessage.extend({
  extras: z.record(z.string(), z.unknown()).meta({
    description: "The fields beside the content: priority, expiry, attachments, references, metadata.",
  }),
}).meta({ id: "WholeInboxMessage" });

const InboxPage = z
  .object({ count: z.int(), messages: z.array(InboxMessage) })
  .meta({ id: "InboxPage", description: "Newest first." });

const OutboxMessage = z
  .object({
    message_id: z.string(),
    swarm_id: z.string(),
    recipient_id: z.string(),
    message_type: z.string(),
    status: z.enum(SENT_STATUSES),
    sent_at: z.string(),
    error: z.string().nullable(),
    content_preview: z.string().meta({ description: "The whole content." }),
  })
  .meta({ id: "OutboxMessage", description: "A message to one recipient." });

const OutboxPage = z
  .object({ count: z.int(), messages: z.array(OutboxMessage) })
  .meta({ id: "OutboxPage", description: "Newest first." });

const InboxCounts = z
  .object({ unread: z.int(), read: z.int(), archived: z.int(), deleted: z.int(), total: z.int() })
  .meta({ id: "InboxCounts" });

const OutboxCounts = z
  .object({ sent: z.int(), delivered: z.int(), failed: z.int(), total: z.int() })
  .meta({ id: "OutboxCounts" });

const Moved = z.object({ status: z.enum(BOX_STATUSES), message_id: z.string() }).meta({ id: "Moved" });

const BatchAnswer = z
  .object({
    action: z.enum(["read", "archive", "delete"]),
    updated: z.int().meta({ description: "Messages that were found and moved." }),
    total: z.int().meta({ description: "Messages in the request." }),
  })
  .meta({ id: "BatchAnswer" });

const WakeAnswer = z
  .object({ status: z.enum(["invoked", "already_active"]), detail: z.null() })
  .meta({ id: "WakeAnswer" });

const WakeRefusal = z.object({ status: z.literal("error"), detail: z.string() }).meta({ id: "WakeRefusal" });

const QueuedNotification = z
  .object({ status: z.literal("queued"), message_id: z.string() })
  .meta({ id: "QueuedNotification" });

const CountQuery = z.object({
  swarm_id: z.string().exactOptional().meta({ description: "Only messages of this swarm." }),
});
const MessagePath = z.object({ message_id: z.string() });

const UNREADABLE = { description: "The query or the body is invalid.", schema: MeshRefusal };
const UNKNOWN = { description: "Unknown message.", schema: MeshRefusal };
const WRITES = ["store_busy", "store_failed"] as const;

const DESCRIPTIONS: Readonly<Record<LocalPath, Description>> = {
  "/api/inbox": {
    ...NO_INPUT,
    id: "listInbox",
    summary: "List messages received from the mesh",
    query: InboxQuery,
    answers: { 200: { description: "The messages.", schema: InboxPage }, 400: UNREADABLE },
  },
  "/api/inbox/count": {
    ...NO_INPUT,
    id: "countInbox",
    summary: "Count received messages by status",
    query: CountQuery,
    answers: { 200: { description: "The counts.", schema: InboxCounts } },
  },
  "/api/inbox/batch": {
    ...NO_INPUT,
    id: "moveInboxMessages",
    summary: "Mark, archive or delete many messages",
    body: BatchBody,
    answers: {
      200: { description: "The result. Unknown messages are skipped.", schema: BatchAnswer },
      400: UNREADABLE,
    },
    errors: WRITES,
  },
  "/api/inbox/{message_id}": {
    ...NO_INPUT,
    id: "getInboxMessage",
    summary: "Get a message and mark it as read",
    params: MessagePath,
    answers: { 200: { description: "The message.", schema: WholeInboxMessage }, 404: UNKNOWN },
    errors: ["not_found", ...WRITES],
  },
  "/api/inbox/{message_id}/{action}": {
    ...NO_INPUT,
    id: "moveInboxMessage",
    summary: "Mark, archive or delete a message",
    params: MessagePath.extend({ action: BatchBody.shape.action }),
    answers: {
      200: { description: "The new status of the message.", schema: Moved },
      400: { description: "The message cannot be moved there from its current status.", schema: MeshRefusal },
      404: UNKNOWN,
    },
    errors: ["not_found", ...WRITES],
  },
  "/api/outbox": {
    ...NO_INPUT,
    id: "listOutbox",
    summary: "List messages sent to the mesh",
    query: OutboxQuery,
    answers: { 200: { description: "The messages.", schema: OutboxPage }, 400: UNREADABLE },
  },
  "/api/outbox/count": {
    ...NO_INPUT,
    id: "countOutbox",
    summary: "Count sent messages by status",
    query: CountQuery,
    answers: { 200: { description: "The counts.", schema: OutboxCounts } },
  },
  "/api/wake": {
    ...NO_INPUT,
    id: "wake",
    summary: "Run the configured wake command",
    proof: {
      scheme: "wakeSecret",
      header: "X-Wake-Secret",
      description: "`secret` in the section [mesh.wake].",
    },
    body: WakeBody,
    answers: {
      200: { description: "No command is configured: local agents are always awake.", schema: WakeAnswer },
      202: { description: "The command was started.", schema: WakeAnswer },
      400: { description: "The body is not a wake notification.", schema: WakeRefusal },
      403: { description: "The secret is wrong.", schema: WakeRefusal },
    },
  },
  "/mesh/github": {
    ...NO_INPUT,
    id: "takeGithubEvent",
    summary: "Announce a GitHub event to the configured swarm",
    protocol: { name: "GitHub webhooks", url: "https://docs.github.com/webhooks" },
    proof: {
      scheme: "githubSignature",
      header: "X-Hub-Signature-256",
      description: "GitHub's signature over the bytes of the body, by `secret` in the section [mesh.github].",
    },
    headers: z.object({ "X-GitHub-Event": z.string().meta({ description: "The kind of event." }) }),
    body: z.looseObject({}),
    answers: {
      202: { description: "The notification was queued.", schema: QueuedNotification },
      204: { description: "An event that is not announced." },
      403: { description: "The signature is invalid.", schema: MeshRefusal },
      503: { description: "This agent is not a member of the configured swarm.", schema: MeshRefusal },
    },
    errors: WRITES,
  },
};

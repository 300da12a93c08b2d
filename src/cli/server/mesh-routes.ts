/** What the OpenAPI document says about the mesh's routes on the main listener. */
import { z } from "zod";
import { NOTHING, OUR_ADMINS, PUBLIC, type RawRoute } from "../../http/index.js";
import { BatchBody, InboxQuery, LOCAL_ROUTES, OutboxQuery, WakeBody } from "../../mesh/index.js";
import { BOX_STATUSES, SENT_STATUSES } from "../../mesh/queue.js";

type LocalPath = (typeof LOCAL_ROUTES)[number]["path"];
type Description = Omit<RawRoute, "method" | "path" | "tag" | "access" | "handle">;

/** @param isServed what the configuration does not turn on is no route */
export function localRoutes(
  handle: RawRoute["handle"],
  isServed: (path: LocalPath) => boolean,
): readonly RawRoute[] {
  return LOCAL_ROUTES.filter(({ path }) => isServed(path)).map(({ method, path, access }) => ({
    ...DESCRIPTIONS[path],
    method,
    path,
    tag: "mesh",
    access: access === "operator" ? OUR_ADMINS : PUBLIC,
    handle,
  }));
}

const MeshRefusal = z
  .object({ error: z.object({ code: z.string(), message: z.string() }) })
  .meta({ id: "MeshRefusal", description: "How the mesh refuses." });

const InboxMessage = z
  .object({
    message_id: z.string(),
    swarm_id: z.string(),
    sender_id: z.string(),
    recipient_id: z.string().nullable().meta({ description: "Null for what this agent noted itself." }),
    message_type: z.string(),
    status: z.enum(BOX_STATUSES),
    received_at: z.string(),
    read_at: z.string().nullable(),
    content_preview: z.string().meta({ description: "The whole content." }),
  })
  .meta({ id: "InboxMessage" });

const WholeInboxMessage = InboxMessage.extend({
  extras: z.record(z.string(), z.unknown()).meta({
    description: "What was sent beside the content: priority, expiry, attachments, references, metadata.",
  }),
}).meta({ id: "WholeInboxMessage" });

const InboxPage = z
  .object({ count: z.int(), messages: z.array(InboxMessage) })
  .meta({ id: "InboxPage", description: "The newest first." });

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
  .meta({ id: "OutboxMessage", description: "A message and one of its recipients." });

const OutboxPage = z
  .object({ count: z.int(), messages: z.array(OutboxMessage) })
  .meta({ id: "OutboxPage", description: "The newest first." });

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
    updated: z.int().meta({ description: "How many were there and not yet where they were to go." }),
    total: z.int().meta({ description: "How many were named." }),
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
  swarm_id: z.string().exactOptional().meta({ description: "Of this swarm alone." }),
});
const MessagePath = z.object({ message_id: z.string() });

const UNREADABLE = { description: "The query or the body is not in order.", schema: MeshRefusal };
const UNKNOWN = { description: "There is no such message.", schema: MeshRefusal };
const WRITES = ["store_busy", "store_failed"] as const;

const DESCRIPTIONS: Readonly<Record<LocalPath, Description>> = {
  "/api/inbox": {
    ...NOTHING,
    id: "listInbox",
    summary: "Messages that came from the mesh",
    query: InboxQuery,
    answers: { 200: { description: "The messages.", schema: InboxPage }, 400: UNREADABLE },
  },
  "/api/inbox/count": {
    ...NOTHING,
    id: "countInbox",
    summary: "How many messages came, by status",
    query: CountQuery,
    answers: { 200: { description: "The numbers.", schema: InboxCounts } },
  },
  "/api/inbox/batch": {
    ...NOTHING,
    id: "moveInboxMessages",
    summary: "Mark, archive or delete many messages",
    body: BatchBody,
    answers: {
      200: { description: "What was done. Unknown messages are passed over.", schema: BatchAnswer },
      400: UNREADABLE,
    },
    errors: WRITES,
  },
  "/api/inbox/{message_id}": {
    ...NOTHING,
    id: "getInboxMessage",
    summary: "One message; it counts as read then",
    params: MessagePath,
    answers: { 200: { description: "The message.", schema: WholeInboxMessage }, 404: UNKNOWN },
    errors: ["not_found", ...WRITES],
  },
  "/api/inbox/{message_id}/{action}": {
    ...NOTHING,
    id: "moveInboxMessage",
    summary: "Mark, archive or delete a message",
    params: MessagePath.extend({ action: BatchBody.shape.action }),
    answers: {
      200: { description: "Where the message is now.", schema: Moved },
      400: { description: "The message cannot go there from where it is.", schema: MeshRefusal },
      404: UNKNOWN,
    },
    errors: ["not_found", ...WRITES],
  },
  "/api/outbox": {
    ...NOTHING,
    id: "listOutbox",
    summary: "Messages that were sent to the mesh",
    query: OutboxQuery,
    answers: { 200: { description: "The messages.", schema: OutboxPage }, 400: UNREADABLE },
  },
  "/api/outbox/count": {
    ...NOTHING,
    id: "countOutbox",
    summary: "How many messages were sent, by status",
    query: CountQuery,
    answers: { 200: { description: "The numbers.", schema: OutboxCounts } },
  },
  "/api/wake": {
    ...NOTHING,
    id: "wake",
    summary: "Say that there is mail, so that the configured command is run",
    proof: {
      scheme: "wakeSecret",
      header: "X-Wake-Secret",
      description: "`secret` in the section [mesh.wake].",
    },
    body: WakeBody,
    answers: {
      200: { description: "There is no command to run: the agents are awake.", schema: WakeAnswer },
      202: { description: "The command is run.", schema: WakeAnswer },
      400: { description: "The body is no wake note.", schema: WakeRefusal },
      403: { description: "The secret is wrong.", schema: WakeRefusal },
    },
  },
  "/mesh/github": {
    ...NOTHING,
    id: "takeGithubEvent",
    summary: "An event of GitHub, announced to the configured swarm",
    protocol: { name: "GitHub webhooks", url: "https://docs.github.com/webhooks" },
    proof: {
      scheme: "githubSignature",
      header: "X-Hub-Signature-256",
      description: "GitHub's signature over the bytes of the body, by `secret` in the section [mesh.github].",
    },
    headers: z.object({ "X-GitHub-Event": z.string().meta({ description: "The kind of event." }) }),
    body: z.looseObject({}),
    answers: {
      202: { description: "The announcement is on its way.", schema: QueuedNotification },
      204: { description: "Nothing that is announced." },
      403: { description: "The signature is not GitHub's.", schema: MeshRefusal },
      503: { description: "This agent is not in the configured swarm.", schema: MeshRefusal },
    },
    errors: WRITES,
  },
};

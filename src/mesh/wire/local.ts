/**
 * The routes for the agent's own operator: inbox, outbox, wake, GitHub. They have no authentication of their own but the
 * secrets named below: the main listener mounts them behind its own, and the mesh's listener does not have them.
 */
import { z } from "zod";
import { isFromGithub, notificationFor } from "../github.js";
import { carriedBy } from "../message/carried.js";
import type { MeshNode } from "../node.js";
import {
  BOX_STATUSES,
  type BoxStatus,
  type MeshReads,
  messageNamed,
  type QueuedMessage,
  type SentMessage,
} from "../queue.js";
import { formatTime } from "../time.js";
import { sameSecret, type WakeNote } from "../wake.js";
import type { MeshRowWrite } from "../writes.js";
import type { MeshRequest, MeshResponse } from "./handler.js";

export interface LocalRequest extends MeshRequest {
  readonly query: URLSearchParams;
}

export interface LocalOptions {
  readonly node: MeshNode;
  readonly reads: MeshReads;
  /** `POST /api/wake`: what happens, and what the caller must know. Absent: no such route. */
  readonly wake?: {
    readonly secret: string;
    readonly invoke: (note: WakeNote) => "invoked" | "already_active";
  };
  /** `POST /mesh/github`: where events of GitHub are announced. Absent: no such route. */
  readonly github?: {
    readonly secret: string;
    /** Its alias or id. It may be joined later. */
    readonly swarm: string;
    readonly to?: string;
  };
}

/** Whoever mounts them has to let in `operator`s only; the others show a signature that is checked here. */
export const LOCAL_ROUTES = [
  { method: "GET", path: "/api/inbox", access: "operator" },
  { method: "GET", path: "/api/inbox/count", access: "operator" },
  { method: "POST", path: "/api/inbox/batch", access: "operator" },
  { method: "GET", path: "/api/inbox/{message_id}", access: "operator" },
  { method: "POST", path: "/api/inbox/{message_id}/{action}", access: "operator" },
  { method: "GET", path: "/api/outbox", access: "operator" },
  { method: "GET", path: "/api/outbox/count", access: "operator" },
  { method: "POST", path: "/api/wake", access: "operator" },
  // GitHub can show nothing but its signature.
  { method: "POST", path: "/mesh/github", access: "signed" },
] as const;

type Answer = MeshResponse;
const NOT_FOUND = reply(404, { error: { code: "NOT_FOUND", message: "there is nothing here" } });

/** `undefined` when the path is not one of these routes. */
export function createLocalHandler(
  options: LocalOptions,
): (request: LocalRequest) => Promise<Answer | undefined> {
  return async (request) => {
    const { method, path } = request;
    if (path === "/api/wake") return method === "POST" ? wake(options, request) : undefined;
    if (path === "/mesh/github") return method === "POST" ? github(options, request) : undefined;
    if (path === "/api/inbox" && method === "GET") return listInbox(options, request);
    if (path === "/api/inbox/count" && method === "GET") return countInbox(options, request);
    if (path === "/api/inbox/batch" && method === "POST") return batch(options, request);
    if (path === "/api/outbox" && method === "GET") return listOutbox(options, request);
    if (path === "/api/outbox/count" && method === "GET") return countOutbox(options, request);
    const one = /^\/api\/inbox\/([^/]+)(?:\/(read|archive|delete))?$/u.exec(path);
    const id = decoded(one?.[1] ?? "");
    if (one === null || id === undefined) return undefined;
    const [, , action] = one;
    if (action === undefined) return method === "GET" ? show(options, id) : undefined;
    return method === "POST" ? act(options, id, action) : undefined;
  };
}

/** The queries and bodies that are checked, for whoever describes the routes. */
export const InboxQuery = z.object({
  status: z.enum([...BOX_STATUSES, "all"]).default("unread"),
  // What was imported may have an id of other software.
  swarm_id: z.string().min(1).optional(),
  sender_id: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
});

async function listInbox({ reads }: LocalOptions, { query }: LocalRequest): Promise<Answer> {
  const parsed = InboxQuery.safeParse(Object.fromEntries(query));
  if (!parsed.success) return invalid(parsed.error);
  const { status, swarm_id, sender_id, limit } = parsed.data;
  const messages = await reads.inbox({
    limit,
    ...(status !== "all" && { box: status }),
    ...(swarm_id !== undefined && { swarmId: swarm_id }),
    ...(sender_id !== undefined && { senderId: sender_id }),
  });
  return reply(200, { count: messages.length, messages: messages.map(toWire) });
}

async function countInbox({ reads }: LocalOptions, { query }: LocalRequest): Promise<Answer> {
  const counts = await reads.inboxCounts(query.get("swarm_id") ?? undefined);
  return reply(200, { ...counts, total: Object.values(counts).reduce((sum, count) => sum + count, 0) });
}

async function show(options: LocalOptions, id: string): Promise<Answer> {
  const message = await messageNamed(options.reads, id);
  if (message === undefined) return NOT_FOUND;
  await options.node.core.commit([markOf(options, message, "read", ["unread"])], "");
  const box = message.box === "unread" ? "read" : message.box;
  return reply(200, { ...toWire({ ...message, box }), extras: carriedBy(message) });
}

const MOVES: Readonly<Record<string, { readonly to: BoxStatus; readonly from: readonly BoxStatus[] }>> = {
  read: { to: "read", from: ["unread"] },
  archive: { to: "archived", from: ["unread", "read"] },
  delete: { to: "deleted", from: ["unread", "read", "archived"] },
};

async function act(options: LocalOptions, id: string, action: string): Promise<Answer> {
  const message = await messageNamed(options.reads, id);
  const move = MOVES[action];
  if (message === undefined || move === undefined) return NOT_FOUND;
  if (!move.from.includes(message.box) && message.box !== move.to) {
    return reply(400, { error: { code: "INVALID_FORMAT", message: `the message is ${message.box}` } });
  }
  await options.node.core.commit([markOf(options, message, move.to, move.from)], "");
  return reply(200, { status: move.to, message_id: message.messageId });
}

export const BatchBody = z.object({
  // Senders choose them, and what was imported has those of other software.
  message_ids: z.array(z.string().min(1)).min(1).max(100),
  action: z.enum(["read", "archive", "delete"]),
});

async function batch(options: LocalOptions, request: LocalRequest): Promise<Answer> {
  const parsed = BatchBody.safeParse(jsonOf(request));
  if (!parsed.success) return invalid(parsed.error);
  const { message_ids, action } = parsed.data;
  const move = MOVES[action];
  const found = await Promise.all(message_ids.map((id) => messageNamed(options.reads, id)));
  const movable = found.filter(
    (message) => message !== undefined && move?.from.includes(message.box) === true,
  );
  const writes = movable.flatMap((message) =>
    message === undefined || move === undefined ? [] : [markOf(options, message, move.to, move.from)],
  );
  if (writes.length > 0) await options.node.core.commit(writes, "");
  return reply(200, { action, updated: writes.length, total: message_ids.length });
}

/** What was sent went to swarms of the protocol, whose ids are UUIDs of any version. */
export const OutboxQuery = InboxQuery.pick({ limit: true }).extend({ swarm_id: z.guid().optional() });

async function listOutbox({ reads }: LocalOptions, { query }: LocalRequest): Promise<Answer> {
  const parsed = OutboxQuery.safeParse(Object.fromEntries(query));
  if (!parsed.success) return invalid(parsed.error);
  const { swarm_id, limit } = parsed.data;
  const messages = await reads.sent({ limit, ...(swarm_id !== undefined && { swarmId: swarm_id }) });
  return reply(200, { count: messages.length, messages: messages.map(sentToWire) });
}

async function countOutbox({ reads }: LocalOptions, { query }: LocalRequest): Promise<Answer> {
  const counts = await reads.sentCounts(query.get("swarm_id") ?? undefined);
  return reply(200, { ...counts, total: Object.values(counts).reduce((sum, count) => sum + count, 0) });
}

export const WakeBody = z.object({
  message_id: z.string(),
  swarm_id: z.string(),
  sender_id: z.string(),
  notification_level: z.enum(["silent", "normal", "urgent"]),
});

function wake({ wake: options }: LocalOptions, request: LocalRequest): Answer {
  if (options === undefined) return NOT_FOUND;
  if (!sameSecret(request.headers["x-wake-secret"], options.secret)) {
    return reply(403, { status: "error", detail: "the wake secret is wrong" });
  }
  const parsed = WakeBody.safeParse(jsonOf(request));
  if (!parsed.success) return reply(400, { status: "error", detail: "the body is not a wake note" });
  const status = options.invoke(parsed.data);
  return reply(status === "invoked" ? 202 : 200, { status, detail: null });
}

async function github({ github: options, node }: LocalOptions, request: LocalRequest): Promise<Answer> {
  if (options === undefined) return NOT_FOUND;
  if (!isFromGithub(request.body, request.headers["x-hub-signature-256"], options.secret)) {
    return reply(403, { error: { code: "NOT_AUTHORIZED", message: "the signature is not GitHub's" } });
  }
  const notification = notificationFor(request.headers["x-github-event"] ?? "", jsonOf(request));
  if (notification === undefined) return { status: 204, headers: {}, body: "" };
  const swarm = node.swarms.find(({ id, alias }) => id === options.swarm || alias === options.swarm);
  if (swarm === undefined) {
    const message = `this agent is not in the swarm ${options.swarm}`;
    return reply(503, { error: { code: "UNAVAILABLE", message } });
  }
  const { messageId } = await node.send({
    swarmId: swarm.id,
    type: "notification",
    ...notification,
    ...(options.to !== undefined && { to: options.to }),
  });
  return reply(202, { status: "queued", message_id: messageId });
}

function markOf(
  { node }: LocalOptions,
  { id }: QueuedMessage,
  status: BoxStatus,
  from: readonly BoxStatus[],
): MeshRowWrite {
  return { kind: "mesh.box.mark", id, from, status, at: node.core.now };
}

function toWire(message: QueuedMessage): Readonly<Record<string, unknown>> {
  return {
    message_id: message.messageId,
    swarm_id: message.swarmId,
    sender_id: message.senderId,
    recipient_id: message.recipientId ?? null,
    message_type: message.type,
    status: message.box,
    received_at: formatTime(message.receivedAt),
    read_at: message.readAt === undefined ? null : formatTime(message.readAt),
    content_preview: message.content,
  };
}

function sentToWire(message: SentMessage): Readonly<Record<string, unknown>> {
  return {
    message_id: message.messageId,
    swarm_id: message.swarmId,
    recipient_id: message.recipientId,
    message_type: message.type,
    status: message.status,
    sent_at: formatTime(message.sentAt),
    error: message.error ?? null,
    content_preview: message.content,
  };
}

/** A part of a path; nothing when it is not well spelled. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function jsonOf({ body }: LocalRequest): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    return undefined;
  }
}

function invalid(error: z.ZodError): Answer {
  const [first] = error.issues;
  const message = `${first?.path.join(".")}: ${first?.message}`;
  return reply(400, { error: { code: "INVALID_FORMAT", message } });
}

function reply(status: number, body: unknown): Answer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}

/**
 * The routes for the agent's operator: inbox, outbox, wake, GitHub. They check only the secrets named below. The main
 * listener authenticates their callers; the listener for peers does not serve them.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { parseJson, unknownField } from "../../base/index.js";
import { secretsMatch } from "../../base/node.js";
import {
  BOX_STATUSES,
  type BoxStatus,
  derivedUuid,
  findMessage,
  formatTime,
  type MeshAgent,
  type MeshReads,
  type MeshRowWrite,
  type QueuedMessage,
  type SentMessage,
  viewExtras,
} from "../../mesh/index.js";
import { isFromGithub, notificationFor } from "./github.js";
import type { MeshRequest, MeshResponse } from "./handler.js";
import type { WakeNotification } from "./wake.js";

export interface OperatorRequest extends MeshRequest {
  readonly query: URLSearchParams;
}

export interface OperatorRouteOptions {
  readonly agent: MeshAgent;
  readonly reads: MeshReads;
  /** `POST /api/wake`: its action and its secret. Without it the route does not exist. */
  readonly wake?: {
    readonly secret: string;
    readonly invoke: (note: WakeNotification) => "invoked" | "already_active";
  };
  /** `POST /mesh/github`: the swarm to notify of GitHub events. Without it the route does not exist. */
  readonly github?: {
    readonly secret: string;
    /** Alias or id. The agent may join it later. */
    readonly swarm: string;
    readonly to?: string;
  };
}

/**
 * The mounting listener must authenticate the `operator` routes. The handler itself verifies the signature of the
 * others.
 */
export const OPERATOR_ROUTES = [
  { method: "GET", path: "/api/inbox", access: "operator" },
  { method: "GET", path: "/api/inbox/count", access: "operator" },
  { method: "POST", path: "/api/inbox/batch", access: "operator" },
  { method: "GET", path: "/api/inbox/{message_id}", access: "operator" },
  { method: "POST", path: "/api/inbox/{message_id}/{action}", access: "operator" },
  { method: "GET", path: "/api/outbox", access: "operator" },
  { method: "GET", path: "/api/outbox/count", access: "operator" },
  // Other agents' wake-ups can authenticate only by the secret, and GitHub only by its signature.
  { method: "POST", path: "/api/wake", access: "signed" },
  { method: "POST", path: "/mesh/github", access: "signed" },
] as const;

type Answer = MeshResponse;
const NOT_FOUND = reply(404, { error: { code: "NOT_FOUND", message: "unknown route" } });

/** Returns `undefined` when the path is not one of these routes. */
export function createOperatorHandler(
  options: OperatorRouteOptions,
): (request: OperatorRequest) => Promise<Answer | undefined> {
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

/** The schemas of queries and bodies, also used for the OpenAPI document. */
export const InboxQuery = z.object({
  status: z.enum([...BOX_STATUSES, "all"]).default("unread"),
  // Imported messages may have ids of other software.
  swarm_id: z.string().min(1).optional(),
  sender_id: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
});

async function listInbox({ reads }: OperatorRouteOptions, { query }: OperatorRequest): Promise<Answer> {
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

async function countInbox({ reads }: OperatorRouteOptions, { query }: OperatorRequest): Promise<Answer> {
  const counts = await reads.inboxCounts(query.get("swarm_id") ?? undefined);
  return reply(200, { ...counts, total: Object.values(counts).reduce((sum, count) => sum + count, 0) });
}

async function show(options: OperatorRouteOptions, id: string): Promise<Answer> {
  const message = await findMessage(options.reads, id);
  if (message === undefined) return NOT_FOUND;
  await options.agent.context.commit([markOf(options, message, "read", ["unread"])], "");
  const box = message.box === "unread" ? "read" : message.box;
  return reply(200, { ...toWire({ ...message, box }), extras: viewExtras(message) });
}

const MOVES: Readonly<Record<string, { readonly to: BoxStatus; readonly from: readonly BoxStatus[] }>> = {
  read: { to: "read", from: ["unread"] },
  archive: { to: "archived", from: ["unread", "read"] },
  delete: { to: "deleted", from: ["unread", "read", "archived"] },
};

async function act(options: OperatorRouteOptions, id: string, action: string): Promise<Answer> {
  const message = await findMessage(options.reads, id);
  const move = MOVES[action];
  if (message === undefined || move === undefined) return NOT_FOUND;
  if (!move.from.includes(message.box) && message.box !== move.to) {
    return reply(400, { error: { code: "INVALID_FORMAT", message: `the message is ${message.box}` } });
  }
  await options.agent.context.commit([markOf(options, message, move.to, move.from)], "");
  return reply(200, { status: move.to, message_id: message.messageId });
}

export const BatchBody = z.strictObject({
  // Senders choose message ids, and imported messages keep the ids of other software.
  message_ids: z.array(z.string().min(1)).min(1).max(100),
  action: z.enum(["read", "archive", "delete"]),
});

async function batch(options: OperatorRouteOptions, request: OperatorRequest): Promise<Answer> {
  const parsed = BatchBody.safeParse(jsonOf(request));
  if (!parsed.success) return invalid(parsed.error, Object.keys(BatchBody.shape));
  const { message_ids, action } = parsed.data;
  const move = MOVES[action];
  const found = await Promise.all(message_ids.map((id) => findMessage(options.reads, id)));
  const movable = found.filter(
    (message) => message !== undefined && move?.from.includes(message.box) === true,
  );
  const writes = movable.flatMap((message) =>
    message === undefined || move === undefined ? [] : [markOf(options, message, move.to, move.from)],
  );
  if (writes.length > 0) await options.agent.context.commit(writes, "");
  return reply(200, { action, updated: writes.length, total: message_ids.length });
}

/** Messages are sent only to swarms of the protocol, whose ids are UUIDs of any version. */
export const OutboxQuery = InboxQuery.pick({ limit: true }).extend({ swarm_id: z.guid().optional() });

async function listOutbox({ reads }: OperatorRouteOptions, { query }: OperatorRequest): Promise<Answer> {
  const parsed = OutboxQuery.safeParse(Object.fromEntries(query));
  if (!parsed.success) return invalid(parsed.error);
  const { swarm_id, limit } = parsed.data;
  const messages = await reads.sent({ limit, ...(swarm_id !== undefined && { swarmId: swarm_id }) });
  return reply(200, { count: messages.length, messages: messages.map(sentToWire) });
}

async function countOutbox({ reads }: OperatorRouteOptions, { query }: OperatorRequest): Promise<Answer> {
  const counts = await reads.sentCounts(query.get("swarm_id") ?? undefined);
  return reply(200, { ...counts, total: Object.values(counts).reduce((sum, count) => sum + count, 0) });
}

export const WakeBody = z.object({
  message_id: z.string(),
  swarm_id: z.string(),
  sender_id: z.string(),
  notification_level: z.enum(["silent", "normal", "urgent"]),
});

function wake({ wake: options }: OperatorRouteOptions, request: OperatorRequest): Answer {
  if (options === undefined) return NOT_FOUND;
  if (!secretsMatch(request.headers["x-wake-secret"], options.secret)) {
    return reply(403, { status: "error", detail: "the wake secret is wrong" });
  }
  const parsed = WakeBody.safeParse(jsonOf(request));
  if (!parsed.success) return reply(400, { status: "error", detail: "the body is not a wake notification" });
  const status = options.invoke(parsed.data);
  return reply(status === "invoked" ? 202 : 200, { status, detail: null });
}

async function github(
  { github: options, agent }: OperatorRouteOptions,
  request: OperatorRequest,
): Promise<Answer> {
  if (options === undefined) return NOT_FOUND;
  if (!isFromGithub(request.body, request.headers["x-hub-signature-256"], options.secret)) {
    return reply(403, { error: { code: "NOT_AUTHORIZED", message: "the GitHub signature is invalid" } });
  }
  const notification = notificationFor(request.headers["x-github-event"] ?? "", jsonOf(request));
  if (notification === undefined) return { status: 204, headers: {}, body: "" };
  const swarm = agent.swarms.find(({ id, alias }) => id === options.swarm || alias === options.swarm);
  if (swarm === undefined) {
    const message = `this agent is not a member of the swarm ${options.swarm}`;
    return reply(503, { error: { code: "UNAVAILABLE", message } });
  }
  const { messageId } = await agent.send({
    swarmId: swarm.id,
    type: "notification",
    // A repeated delivery has the same body and is announced once.
    messageId: derivedUuid(`github/${createHash("sha256").update(request.body).digest("hex")}`),
    ...notification,
    ...(options.to !== undefined && { to: options.to }),
  });
  return reply(202, { status: "queued", message_id: messageId });
}

function markOf(
  { agent }: OperatorRouteOptions,
  { id }: QueuedMessage,
  status: BoxStatus,
  from: readonly BoxStatus[],
): MeshRowWrite {
  return { kind: "mesh.box.mark", id, from, status, at: agent.context.now };
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

/** Decodes a path segment; `undefined` if it is malformed. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function jsonOf({ body }: OperatorRequest): unknown {
  try {
    return parseJson(Buffer.from(body).toString("utf8"));
  } catch {
    return undefined;
  }
}

function invalid(error: z.ZodError, known: readonly string[] = []): Answer {
  const [first] = error.issues;
  const unknown = first?.code === "unrecognized_keys" ? first.keys[0] : undefined;
  const message =
    unknown === undefined ? `${first?.path.join(".")}: ${first?.message}` : unknownField(unknown, known);
  return reply(400, { error: { code: "INVALID_FORMAT", message } });
}

function reply(status: number, body: unknown): Answer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}

/** Mail to other servers: what waits, what was given up, and what an admin can do about it. */
import type { z } from "zod";
import { isRecord, MailroomError } from "../../../base/index.js";
import {
  ADMINS,
  type Caller,
  defineRoute,
  NO_INPUT,
  type OutboxQueue,
  type Route,
  type RouteRequest,
  type RouteResponse,
} from "../../../extension/index.js";
import type { FullStore } from "../../../store/index.js";
import type { MailDoor } from "../door.js";
import { ItemPath, OutboxItem, OutboxPage, OutboxQuery } from "../schemas/administration.js";

type OutboxReads = FullStore["outbox"];
type StoredItem = NonNullable<Awaited<ReturnType<OutboxReads["item"]>>>;

const NO_MAIL = {
  queue: null,
  counts: { waiting: 0, delivered: 0, refused: 0, expired: 0 },
  by_target: [],
  items: [],
  next_after: null,
} as const;

export function outboxRoutes({ state, outbox }: MailDoor): Route[] {
  const queueOf = (name: string): OutboxQueue | undefined => state.outbox.find(({ queue }) => queue === name);

  /** @throws MailroomError `unknown_item`, `already_ended` */
  async function change(
    id: string,
    { request, caller, what }: { request: RouteRequest; caller: Caller; what: string },
    work: (queue: OutboxQueue, item: StoredItem) => void | Promise<void>,
  ): Promise<RouteResponse> {
    const item = await outbox.item(id);
    const queue = item === undefined ? undefined : queueOf(item.queue);
    if (item === undefined || queue === undefined)
      throw new MailroomError("unknown_item", `the outbox has no item '${id}'`);
    if (item.outcome !== undefined)
      throw new MailroomError("already_ended", `the item has its outcome: ${item.outcome}`);
    await work(queue, item);
    request.log.info({ admin: caller.principal.id, item: id, target: item.target }, what);
    return { status: 200, body: toItem((await outbox.item(id)) ?? item) };
  }

  const changing = {
    ...NO_INPUT,
    method: "POST",
    tag: "administration",
    access: ADMINS,
    params: ItemPath,
    answers: { 200: { description: "The item.", schema: OutboxItem } },
    errors: ["unknown_item", "already_ended", "wrong_state", "store_busy", "store_failed"],
  } as const;
  return [
    defineRoute({
      ...NO_INPUT,
      id: "adminListOutbox",
      method: "GET",
      path: "/admin/outbox",
      tag: "administration",
      summary: "List mail to other servers",
      access: ADMINS,
      query: OutboxQuery,
      answers: { 200: { description: "Part of a queue.", schema: OutboxPage } },
      errors: ["unknown_item"],
      async handle({ query }) {
        const queues = state.outbox.map(({ queue }) => queue);
        const queue = query.queue ?? queues[0];
        if (queue === undefined) return { status: 200, body: { ...NO_MAIL, queues } };
        if (!queues.includes(queue)) {
          const known = queues.length === 0 ? "this server has none" : `there are: ${queues.join(", ")}`;
          throw new MailroomError("unknown_item", `the outbox has no queue '${queue}'; ${known}`);
        }
        const { status, target, after, limit = 100 } = query;
        const items = await outbox.list(queue, {
          limit,
          ...(status !== undefined && { status }),
          ...(target !== undefined && { target }),
          ...(after !== undefined && { afterNumber: after }),
        });
        const byTarget = [...(await outbox.waitingByTarget(queue))];
        return {
          status: 200,
          body: {
            queues,
            queue,
            counts: await outbox.counts(queue),
            by_target: byTarget.map(([name, waiting]) => ({ target: name, waiting })),
            items: items.map(toItem),
            next_after: items.length < limit ? null : (items.at(-1)?.number ?? null),
          },
        };
      },
    }),
    defineRoute({
      ...changing,
      id: "adminRetryOutbox",
      path: "/admin/outbox/{id}/retry",
      summary: "Deliver waiting mail now",
      description: "All waiting deliveries to the same target become due.",
      handle: ({ params, request }, caller) =>
        change(params.id, { request, caller, what: "an admin hastened mail" }, (queue, { target }) =>
          queue.retryNow(target),
        ),
    }),
    defineRoute({
      ...changing,
      id: "adminAbandonOutbox",
      path: "/admin/outbox/{id}/abandon",
      summary: "Abandon waiting mail",
      description: "Its sender is notified as if it had expired.",
      handle: ({ params, request }, caller) =>
        change(params.id, { request, caller, what: "an admin gave mail up" }, async (queue) => {
          const reason = `given up by admin '${caller.principal.id}'`;
          if (await queue.abandon(params.id, reason)) return;
          throw new MailroomError("wrong_state", "the mail is being delivered at this moment: look again");
        }),
    }),
  ];
}

/** The payload belongs to the queue's owner; of its content only the addresses are shown. */
function toItem(item: StoredItem): z.output<typeof OutboxItem> {
  return {
    number: item.number,
    id: item.id,
    queue: item.queue,
    target: item.target,
    status: item.outcome ?? "waiting",
    created_at: item.createdAt,
    due_at: item.dueAt,
    deadline_at: item.deadlineAt ?? null,
    attempts: item.attempts,
    interrupted: item.interrupted,
    reason: item.reason ?? null,
    finished_at: item.finishedAt ?? null,
    ...addressesIn(item),
  };
}

function addressesIn({ payload, dedupeKey }: StoredItem) {
  const parsed = parse(payload);
  const message = recordIn(parsed, "message");
  const inner = recordIn(message, "message");
  const draft = recordIn(parsed, "draft");
  // `key/message/swarm`: what remains of mail whose payload was dropped with its outcome.
  const [key, messageId] = dedupeKey?.split("/") ?? [];
  return {
    task_key: textIn(parsed, "key") ?? textIn(recordIn(parsed, "task"), "key") ?? key ?? null,
    message_id: textIn(message, "id") ?? textIn(draft, "message_id") ?? messageId ?? null,
    to: recipientsIn(inner) ?? textIn(parsed, "recipientId"),
    subject: textIn(inner, "subject") ?? textIn(draft, "type"),
  };
}

function recipientsIn(message: Record<string, unknown>): string | null {
  const recipients = [message.recipients ?? message.recipient ?? []].flat();
  const names = recipients.flatMap((one) => (isRecord(one) ? (textIn(one, "address") ?? []) : []));
  return names.length === 0 ? null : names.join(", ");
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function recordIn(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const part = value[name];
  return isRecord(part) ? part : {};
}

function textIn(value: Record<string, unknown>, name: string): string | null {
  const part = value[name];
  return typeof part === "string" ? part : null;
}

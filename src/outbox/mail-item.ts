/** Mail to another swarm as an item of the outbox, for carriers that store the message as it is. */
import type { DeliveryResult, OutgoingMail } from "../engine/index.js";
import { enqueue, type FinalOutcome, type OutboxEnqueue } from "./item.js";
import type { StoredItem } from "./ports.js";

/** The row for the commit of the mail. @param lane deliveries of one lane keep their order */
export function enqueueMail(
  mail: OutgoingMail,
  { queue, id, lane, now }: { queue: string; id: string; lane: string; now: number },
): OutboxEnqueue {
  return enqueue({
    queue,
    id,
    lane,
    target: mail.swarm,
    payload: JSON.stringify(mail),
    createdAt: now,
    dueAt: now,
    dedupeKey: mailKey(mail),
  });
}

/** Identifies mail of a task to one swarm. */
export function mailKey({ task, message, swarm }: OutgoingMail): string {
  return `${task.key}/${message.id}/${swarm}`;
}

export function mailIn({ payload }: StoredItem): OutgoingMail {
  // Written by `enqueueMail`.
  return JSON.parse(payload);
}

export function deliveryResult(outcome: FinalOutcome["outcome"], reason: string | undefined): DeliveryResult {
  return outcome === "delivered" ? { ok: true } : { ok: false, reason: reason ?? outcome };
}

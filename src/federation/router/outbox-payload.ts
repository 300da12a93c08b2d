/** A message to another swarm as stored in the outbox. Contains no credential. */

import { isRecord } from "../../base/index.js";
import type { OutgoingMail } from "../../engine/index.js";
import { INSTANCE_ROLES, type InstanceId } from "../../engine/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { MAILMessage } from "../../mail/index.js";
import { parseMailMessage } from "../../mail/index.js";

export interface OutboxPayload {
  readonly key: JournalKey;
  readonly owner: string;
  /** At the time of sending; more may have been added when it is delivered. */
  readonly contributors: readonly string[];
  readonly instance: InstanceId;
  readonly message: MAILMessage;
  readonly hops: number;
}

export function toOutboxPayload({ task, instance, message, hops }: OutgoingMail): OutboxPayload {
  return { key: task.key, owner: task.owner, contributors: task.contributors, instance, message, hops };
}

export function writeOutboxPayload(payload: OutboxPayload): string {
  return JSON.stringify(payload);
}

/**
 *
 * @throws Error when the text is not an outbox payload
 */
export function readOutboxPayload(text: string): OutboxPayload {
  const parsed: unknown = JSON.parse(text);
  if (!isRecord(parsed) || !isRecord(parsed.instance) || !Array.isArray(parsed.contributors))
    throw unreadable();
  const { key, owner, hops, instance } = parsed;
  const role = INSTANCE_ROLES.find((known) => known === instance.role);
  if (typeof key !== "string" || typeof owner !== "string" || typeof hops !== "number") throw unreadable();
  if (role === undefined || typeof instance.id !== "string") throw unreadable();
  return {
    key,
    owner,
    hops,
    contributors: parsed.contributors.filter((item) => typeof item === "string"),
    instance: { role, id: instance.id },
    message: parseMailMessage(parsed.message),
  };
}

function unreadable(): Error {
  return new Error("the outbox row is not a message to another swarm");
}

/** Identifies the delivery of one message to one swarm. */
export function dedupeKeyOf(
  mail: Pick<OutgoingMail, "task" | "swarm"> & { message: { id: string } },
): string {
  return `${mail.task.key}/${mail.message.id}/${mail.swarm}`;
}

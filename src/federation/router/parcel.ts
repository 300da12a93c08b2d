/** A message on its way to another swarm, as it waits in the outbox. Holds no credential. */
import type { OutgoingMail } from "../../engine/carrier.js";
import { INSTANCE_ROLES, type InstanceId, type JournalKey } from "../../engine/ports.js";
import type { MAILMessage } from "../../mail/message.js";
import { isRecord } from "../../mail/record.js";
import { parseMailMessage } from "../../mail/validate.js";

export interface Parcel {
  readonly key: JournalKey;
  readonly owner: string;
  /** At the time of sending; when it is delivered there may be more. */
  readonly contributors: readonly string[];
  readonly instance: InstanceId;
  readonly message: MAILMessage;
  readonly hops: number;
}

export function parcelOf({ task, instance, message, hops }: OutgoingMail): Parcel {
  return { key: task.key, owner: task.owner, contributors: task.contributors, instance, message, hops };
}

export function writeParcel(parcel: Parcel): string {
  return JSON.stringify(parcel);
}

/** @throws Error when the text is none of ours */
export function readParcel(text: string): Parcel {
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
  return new Error("the outbox holds something that is not a message to another swarm");
}

/** Mail of a task to a swarm, under the same name whenever it is asked for. */
export function parcelName(mail: Pick<OutgoingMail, "task" | "swarm"> & { message: { id: string } }): string {
  return `${mail.task.key}/${mail.message.id}/${mail.swarm}`;
}

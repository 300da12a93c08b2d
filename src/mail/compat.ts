/**
 * Tolerant in. Normalizes the known deviations of other implementations and older documents from the schemas: nulls for
 * absent fields, a system with the address `system`, bare wrappers, older wrappers without an owner, two spellings of a
 * completion's subject. No other place does this.
 *
 * The input is never changed. Invalid data is rejected with the paths of the original.
 */
import { exceedsDepth, isRecord, MAX_JSON_DEPTH, ownValue } from "../base/index.js";
import { type Checked, valueOrThrow } from "./errors.js";
import type { MAILInterswarmMessage, MAILMessage } from "./message.js";
import { formatTaskContributor } from "./owner.js";

import { SYSTEM_SUBJECTS } from "./subjects.js";
import { checkInterswarmMessage, checkMailMessage, type ValidateOptions } from "./validate.js";

export interface AcceptOptions extends ValidateOptions {
  /** The swarm whose name replaces the address `system`. */
  readonly localSwarm?: string;
}

export interface AcceptInterswarmOptions extends ValidateOptions {
  /**
   * Whether the source swarm becomes the owner of a wrapper without one. Only for the route of the oldest form;
   * elsewhere such a wrapper is malformed.
   */
  readonly deriveOwner?: boolean;
}

/** Normalizes a message in any known form to a valid message. */
export function acceptMailMessage(value: unknown, options: AcceptOptions = {}): Checked<MAILMessage> {
  if (!isRecord(value)) return checkMailMessage(value, options);
  const message = acceptPayload(value.message, options.localSwarm);
  return checkMailMessage({ ...value, message }, options);
}

/**
 * Normalizes a wrapper in any known form. The specification puts it under `message`; older senders post it bare
 * (REF-10).
 */
export function acceptInterswarmMessage(
  value: unknown,
  options: AcceptInterswarmOptions = {},
): Checked<MAILInterswarmMessage> {
  if (isRecord(value) && "message" in value && !("payload" in value)) {
    return withPathPrefix("/message", acceptWrapper(value.message, options));
  }
  return acceptWrapper(value, options);
}

/**
 * Reads a message tolerantly, as `acceptMailMessage` does.
 * @throws MailroomError `bad_message`
 */
export function parseAcceptedMailMessage(value: unknown, options?: AcceptOptions): MAILMessage {
  return valueOrThrow("MAIL message", acceptMailMessage(value, options));
}

/**
 * Reads a message between swarms tolerantly, as `acceptInterswarmMessage` does.
 * @throws MailroomError `bad_message`
 */
export function parseAcceptedInterswarmMessage(
  value: unknown,
  options?: AcceptInterswarmOptions,
): MAILInterswarmMessage {
  return valueOrThrow("MAIL interswarm message", acceptInterswarmMessage(value, options));
}

/** The subject in the published samples, where the reference itself writes `::task_complete::`. */
const SAMPLE_COMPLETION_SUBJECT = "Task complete";

/**
 * Whether a message completes a task. Between swarms a completion is sent as a response, because the wrapper has no
 * other type for it. There only the subject with colons counts, because an agent's ordinary answer may have the other
 * one. Completions with other subjects are the system's: errors, breakpoints.
 */
export function isTaskComplete(message: MAILMessage | MAILInterswarmMessage): boolean {
  const { subject } = "payload" in message ? message.payload : message.message;
  switch (message.msg_type) {
    case "broadcast_complete":
      return subject === SYSTEM_SUBJECTS.taskComplete || subject === SAMPLE_COMPLETION_SUBJECT;
    case "response":
      return subject === SYSTEM_SUBJECTS.taskComplete;
    case "request":
    case "broadcast":
    case "interrupt":
      return false;
  }
}

const WRAPPER_FIELDS = [
  "message_id",
  "source_swarm",
  "target_swarm",
  "timestamp",
  "payload",
  "msg_type",
  "task_owner",
  "task_contributors",
  "auth_token",
  "metadata",
] as const;
const PAYLOAD_FIELDS = ["task_id", "sender", "subject", "body", "sender_swarm", "routing_info"] as const;
const FIELDS_TO_ONE = [...PAYLOAD_FIELDS, "request_id", "recipient", "recipient_swarm"] as const;
const FIELDS_TO_MANY = [...PAYLOAD_FIELDS, "recipients", "recipient_swarms"] as const;
const FIELDS_OF: Readonly<Record<string, readonly string[]>> = {
  request: FIELDS_TO_ONE,
  response: FIELDS_TO_ONE,
  broadcast: [...FIELDS_TO_MANY, "broadcast_id"],
  interrupt: [...FIELDS_TO_MANY, "interrupt_id"],
};
const OPTIONAL_IN_PAYLOAD = ["sender_swarm", "recipient_swarm", "recipient_swarms", "routing_info"] as const;
const OPTIONAL_IN_WRAPPER = ["auth_token", "metadata"] as const;
const OWNER_FIELDS = ["task_owner", "task_contributors"] as const;

function acceptWrapper(value: unknown, options: AcceptInterswarmOptions): Checked<MAILInterswarmMessage> {
  if (exceedsDepth(value, MAX_JSON_DEPTH)) {
    return { ok: false, errors: [{ path: "", message: `is nested to more than ${MAX_JSON_DEPTH} levels` }] };
  }
  if (!isRecord(value)) return checkInterswarmMessage(value, options);
  const source = typeof value.source_swarm === "string" ? value.source_swarm : undefined;
  // Other versions and implementations may say more than the schemas know.
  const wrapper = withoutNulls(only(value, WRAPPER_FIELDS), OPTIONAL_IN_WRAPPER);
  const known = typeof value.msg_type === "string" ? ownValue(FIELDS_OF, value.msg_type) : undefined;
  const payload = isRecord(value.payload) && known !== undefined ? only(value.payload, known) : value.payload;
  wrapper.payload = acceptPayload(payload, source);
  if (options.deriveOwner && source !== undefined) {
    const owned = withoutNulls(wrapper, OWNER_FIELDS);
    const owner = formatTaskContributor({ role: "swarm", id: source, swarm: source });
    owned.task_owner ??= owner;
    owned.task_contributors ??= [owned.task_owner];
    return checkInterswarmMessage(owned, options);
  }
  return checkInterswarmMessage(wrapper, options);
}

function acceptPayload(value: unknown, systemSwarm: string | undefined): unknown {
  if (!isRecord(value)) return value;
  const payload = withoutNulls(value, OPTIONAL_IN_PAYLOAD);
  const swarm = typeof payload.sender_swarm === "string" ? payload.sender_swarm : systemSwarm;
  if (swarm !== undefined) payload.sender = nameSystem(payload.sender, swarm);
  return payload;
}

/** MAIL: Type `system` has the swarm's name as its address; the published sample has `system`. */
function nameSystem(sender: unknown, swarm: string): unknown {
  if (!isRecord(sender) || sender.address_type !== "system" || sender.address !== "system") return sender;
  return { ...sender, address: swarm };
}

/** Returns a copy with these fields and no others. */
function only(value: Readonly<Record<string, unknown>>, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(value, field)).map((field) => [field, value[field]]),
  );
}

/** Returns a copy without optional fields that are null. */
function withoutNulls(
  value: Readonly<Record<string, unknown>>,
  fields: readonly string[],
): Record<string, unknown> {
  const copy: Record<string, unknown> = { ...value };
  for (const field of fields) if (copy[field] === null) delete copy[field];
  return copy;
}

function withPathPrefix<T>(prefix: string, checked: Checked<T>): Checked<T> {
  if (checked.ok) return checked;
  return { ok: false, errors: checked.errors.map(({ path, message }) => ({ path: prefix + path, message })) };
}

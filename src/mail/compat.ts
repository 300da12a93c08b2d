/**
 * Tolerant in. Everything that other implementations and older documents really write, and that is not what the schemas
 * say, is put right here and nowhere else: nulls for absent fields, a system that calls itself `system`, bare
 * wrappers, older wrappers without an owner, two spellings of the subject of a completion.
 *
 * The input is never changed. What cannot be put right is refused with the paths of the original.
 */
import { DEEPEST_JSON, isDeeperThan } from "./depth.js";
import { type Checked, valueOrThrow } from "./errors.js";
import type { MAILInterswarmMessage, MAILMessage } from "./message.js";
import { formatTaskContributor } from "./owner.js";
import { isRecord } from "./record.js";
import { SYSTEM_SUBJECTS } from "./subjects.js";
import { checkInterswarmMessage, checkMailMessage, type ValidateOptions } from "./validate.js";

export interface AcceptOptions extends ValidateOptions {
  /** Whose name the system of a message takes when it calls itself just `system`. */
  readonly localSwarm?: string;
}

export interface AcceptInterswarmOptions extends ValidateOptions {
  /**
   * The wrapper of the oldest form has no owner: its source swarm is taken for one. Only for the route of that form;
   * everywhere else a wrapper without an owner is malformed.
   */
  readonly deriveOwner?: boolean;
}

/** A message in any known spelling, as a message that validates. */
export function acceptMailMessage(value: unknown, options: AcceptOptions = {}): Checked<MAILMessage> {
  if (!isRecord(value)) return checkMailMessage(value, options);
  const message = acceptPayload(value.message, options.localSwarm);
  return checkMailMessage({ ...value, message }, options);
}

/**
 * A wrapper in any known spelling. The seed puts it under `message`, older senders post it bare: both are taken.
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

/** @throws MailFormatError */
export function parseAcceptedMailMessage(value: unknown, options?: AcceptOptions): MAILMessage {
  return valueOrThrow("MAIL message", acceptMailMessage(value, options));
}

/** @throws MailFormatError */
export function parseAcceptedInterswarmMessage(
  value: unknown,
  options?: AcceptInterswarmOptions,
): MAILInterswarmMessage {
  return valueOrThrow("MAIL interswarm message", acceptInterswarmMessage(value, options));
}

/** The subject that the published samples have where the reference itself writes `::task_complete::`. */
const SAMPLE_COMPLETION_SUBJECT = "Task complete";

/**
 * Whether a message says that a task was completed. Between swarms a completion travels as a response, since the wrapper
 * knows no other type for it; there only the subject with the colons counts, because an agent may well give an
 * ordinary answer the other one. Completions with other subjects are the system's: errors, breakpoints.
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

const OPTIONAL_IN_PAYLOAD = ["sender_swarm", "recipient_swarm", "recipient_swarms", "routing_info"] as const;
const OPTIONAL_IN_WRAPPER = ["auth_token", "metadata"] as const;
const OWNER_FIELDS = ["task_owner", "task_contributors"] as const;

function acceptWrapper(value: unknown, options: AcceptInterswarmOptions): Checked<MAILInterswarmMessage> {
  if (isDeeperThan(DEEPEST_JSON, value)) {
    return { ok: false, errors: [{ path: "", message: `is nested to more than ${DEEPEST_JSON} levels` }] };
  }
  if (!isRecord(value)) return checkInterswarmMessage(value, options);
  const source = typeof value.source_swarm === "string" ? value.source_swarm : undefined;
  const wrapper = withoutNulls(value, OPTIONAL_IN_WRAPPER);
  wrapper.payload = acceptPayload(value.payload, source);
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

/** MAIL: Type `system` has the swarm's name for an address; the published sample has the word `system`. */
function nameSystem(sender: unknown, swarm: string): unknown {
  if (!isRecord(sender) || sender.address_type !== "system" || sender.address !== "system") return sender;
  return { ...sender, address: swarm };
}

/** A copy in which the fields that may be absent are absent where they were null. */
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

/** Reads a message from the wire. Checks every field, names problems by path, and lower-cases ids. */

import { isRecord, isUuid } from "../../base/index.js";
import { checkAgentId } from "../identity/agent-id.js";
import { decodeBase64 } from "../identity/base64.js";
import { parseCanonicalTime, parseTime } from "../time.js";
import { checkEndpoint } from "./endpoint.js";
import { type FieldProblem, readAttachments, readMetadata, readReferences } from "./extras.js";
import {
  ASP_VERSION,
  LIMITS,
  MESSAGE_TYPES,
  type MeshMessage,
  type MessageExtras,
  type MessageType,
  PRIORITIES,
  type Priority,
} from "./types.js";

const LONE_SURROGATE = /\p{Surrogate}/u;
const VERSION = /^(\d{1,9})\.\d{1,9}\.\d{1,9}$/u;

/** ASP: Versioning. Accepts the same major version; returns the problem otherwise. */
export function checkVersion(text: string): string | undefined {
  const major = VERSION.exec(text)?.[1];
  if (major === undefined) return "must be a semantic version such as 0.1.0";
  return Number(major) === Number(ASP_VERSION.split(".")[0])
    ? undefined
    : `${text} has another major version than ${ASP_VERSION}`;
}

/** Counts code points, as the reference does. */
export function tooLong(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  if (text.length > 2 * limit) return true;
  let count = 0;
  for (const _ of text) count += 1;
  return count > limit;
}

/** Truncates by code points, because half a surrogate pair cannot be encoded in UTF-8. */
export function cutTo(text: string, limit: number): string {
  return tooLong(text, limit)
    ? Array.from(text.slice(0, 2 * limit))
        .slice(0, limit)
        .join("")
    : text;
}

/** For names: they are shown in lists, where a line break could forge a line. */
export function toOneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, " ");
}

export type CheckedMessage =
  | { readonly message: MeshMessage }
  | { readonly problems: readonly FieldProblem[] };

export function checkMessage(value: unknown): CheckedMessage {
  if (!isRecord(value)) return { problems: [{ path: "", message: "must be a JSON object" }] };
  const problems: FieldProblem[] = [];
  const add = (path: string, message: string | undefined): void => {
    if (message !== undefined) problems.push({ path, message });
  };
  const text = (name: string, check: (text: string) => string | undefined): string => {
    const field = value[name];
    if (typeof field !== "string") {
      add(name, field === undefined ? "is required" : "must be a string");
      return "";
    }
    add(name, check(field));
    return field;
  };

  const protocol_version = text("protocol_version", checkVersion);
  const message_id = text("message_id", checkUuid).toLowerCase();
  const timestamp = text("timestamp", (time) =>
    parseCanonicalTime(time) === undefined ? "must have the form 2026-02-05T14:30:00.000Z" : undefined,
  );
  const sender = readSender(value.sender, add);
  const recipient = text("recipient", (id) => (id === "broadcast" ? undefined : checkAgentId(id)));
  const swarm_id = text("swarm_id", checkUuid).toLowerCase();
  const type = text("type", (name) => oneOf(MESSAGE_TYPES, name));
  const content = text("content", checkContent);
  const signature = text("signature", (base64) =>
    decodeBase64(base64)?.length === 64 ? undefined : "must be the base64 encoding of 64 bytes",
  );
  const message: Mutable<MeshMessage> = {
    protocol_version,
    message_id,
    timestamp,
    sender,
    recipient,
    swarm_id,
    type: pick<MessageType>(MESSAGE_TYPES, type) ?? "message",
    content,
    signature,
  };
  readExtras(message, value, add, problems);
  return problems.length > 0 ? { problems } : { message };
}

export function checkContent(content: string): string | undefined {
  if (tooLong(content, LIMITS.contentCharacters)) {
    return `must not be longer than ${LIMITS.contentCharacters} characters`;
  }
  // Cannot be encoded in UTF-8, so each side would sign different bytes.
  return LONE_SURROGATE.test(content) ? "must not contain a lone surrogate" : undefined;
}

function readSender(
  value: unknown,
  add: (path: string, message: string | undefined) => void,
): MeshMessage["sender"] {
  const none = { agent_id: "", endpoint: "" };
  if (!isRecord(value)) {
    add("sender", value === undefined ? "is required" : "must be an object");
    return none;
  }
  const { agent_id, endpoint } = value;
  if (typeof agent_id === "string") add("sender.agent_id", checkAgentId(agent_id));
  else add("sender.agent_id", "must be a string");
  if (typeof endpoint === "string") add("sender.endpoint", checkEndpoint(endpoint));
  else add("sender.endpoint", "must be a string");
  return typeof agent_id === "string" && typeof endpoint === "string" ? { agent_id, endpoint } : none;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Reads the optional fields. Null counts as absent, because some peers send it. */
function readExtras(
  into: Mutable<MessageExtras>,
  value: Readonly<Record<string, unknown>>,
  add: (path: string, message: string | undefined) => void,
  problems: FieldProblem[],
): void {
  const optional = (name: string, check: (text: string) => string | undefined): string | undefined => {
    const field = value[name] ?? undefined;
    if (field === undefined) return undefined;
    if (typeof field === "string") {
      add(name, check(field));
      return field;
    }
    add(name, "must be a string or null");
    return undefined;
  };
  const in_reply_to = optional("in_reply_to", checkUuid)?.toLowerCase();
  const thread_id = optional("thread_id", checkUuid)?.toLowerCase();
  const priority = pick<Priority>(
    PRIORITIES,
    optional("priority", (name) => oneOf(PRIORITIES, name)),
  );
  const expires_at = optional("expires_at", (time) =>
    parseTime(time) === undefined ? "must be an ISO 8601 time" : undefined,
  );
  const attachments = readAttachments(value.attachments, problems);
  const references = readReferences(value.references, "receiving", problems);
  const metadata = readMetadata(value.metadata, problems);
  if (in_reply_to !== undefined) into.in_reply_to = in_reply_to;
  if (thread_id !== undefined) into.thread_id = thread_id;
  if (priority !== undefined) into.priority = priority;
  if (expires_at !== undefined) into.expires_at = expires_at;
  if (attachments !== undefined) into.attachments = attachments;
  if (references !== undefined) into.references = references;
  if (metadata !== undefined) into.metadata = metadata;
}

function checkUuid(text: string): string | undefined {
  return isUuid(text) ? undefined : "must be a UUID";
}

function oneOf(words: readonly string[], word: string): string | undefined {
  return words.includes(word) ? undefined : `must be one of ${words.join(", ")}`;
}

function pick<Word extends string>(words: readonly Word[], word: string | undefined): Word | undefined {
  return words.find((known) => known === word);
}

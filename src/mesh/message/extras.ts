/**
 * ASP: references, attachments and metadata. Strict when sending; when receiving, unknown types and actions are
 * accepted.
 */
import { isRecord } from "../../base/index.js";
import { decodeBase64 } from "../identity/base64.js";
import { isHttpsUrl } from "./endpoint.js";
import { type Attachment, LIMITS, type Reference } from "./types.js";

export type Direction = "sending" | "receiving";

/** Required fields of each reference type. */
const REFERENCE_FIELDS: Readonly<Record<string, readonly (keyof Reference)[]>> = {
  github_repo: ["repo"],
  github_issue: ["repo", "number"],
  github_pr: ["repo", "number"],
  github_commit: ["repo", "sha"],
  url: ["url"],
};

const REFERENCE_ACTIONS = [
  "claimed",
  "completed",
  "blocked",
  "unblocked",
  "assigned",
  "mention",
  "review_requested",
] as const;

const REPO = /^[a-zA-Z0-9_.-]+\/[a-zA-Z0-9_.-]+$/u;

export interface FieldProblem {
  readonly path: string;
  readonly message: string;
}

type Item = Readonly<Record<string, unknown>>;

export function readReferences(
  value: unknown,
  direction: Direction,
  problems: FieldProblem[],
): Reference[] | undefined {
  return readList("references", value, LIMITS.references, problems, (item, path) =>
    readReference(item, path, direction, problems),
  );
}

function readReference(
  item: Item,
  path: string,
  direction: Direction,
  problems: FieldProblem[],
): Reference | undefined {
  const before = problems.length;
  const text = (name: "type" | "repo" | "sha" | "url" | "action"): string | undefined => {
    const value = item[name] ?? undefined;
    if (value === undefined || typeof value === "string") return value;
    problems.push({ path: `${path}.${name}`, message: "must be a string" });
    return undefined;
  };
  const type = text("type");
  const repo = text("repo");
  const sha = text("sha");
  const url = text("url");
  const action = text("action");
  const number = item.number ?? undefined;
  if (number !== undefined && !Number.isSafeInteger(number)) {
    problems.push({ path: `${path}.number`, message: "must be an integer" });
  }
  if (type === undefined || type === "") problems.push({ path: `${path}.type`, message: "is required" });
  if (repo !== undefined && !REPO.test(repo)) {
    problems.push({ path: `${path}.repo`, message: "must have the form owner/name" });
  }
  // An unauthenticated peer chooses the type, and `constructor` is not one.
  const needed =
    type !== undefined && Object.hasOwn(REFERENCE_FIELDS, type) ? REFERENCE_FIELDS[type] : undefined;
  for (const name of needed ?? []) {
    if ((item[name] ?? undefined) === undefined) {
      problems.push({ path: `${path}.${name}`, message: `is required for ${type}` });
    }
  }
  if (direction === "sending") {
    if (type !== undefined && needed === undefined) {
      const known = Object.keys(REFERENCE_FIELDS).join(", ");
      problems.push({ path: `${path}.type`, message: `must be one of ${known}` });
    }
    if (action !== undefined && !REFERENCE_ACTIONS.some((known) => known === action)) {
      problems.push({ path: `${path}.action`, message: `must be one of ${REFERENCE_ACTIONS.join(", ")}` });
    }
  }
  if (problems.length > before || type === undefined) return undefined;
  return {
    type,
    ...(repo !== undefined && { repo }),
    ...(typeof number === "number" && { number }),
    ...(sha !== undefined && { sha }),
    ...(url !== undefined && { url }),
    ...(action !== undefined && { action }),
  };
}

export function readAttachments(value: unknown, problems: FieldProblem[]): Attachment[] | undefined {
  return readList("attachments", value, LIMITS.attachments, problems, (item, path) =>
    readAttachment(item, path, problems),
  );
}

function readAttachment(item: Item, path: string, problems: FieldProblem[]): Attachment | undefined {
  const { type, mime_type, content } = item;
  if (type !== "url" && type !== "inline") {
    problems.push({ path: `${path}.type`, message: "must be url or inline" });
    return undefined;
  }
  if (typeof mime_type !== "string" || mime_type === "") {
    problems.push({ path: `${path}.mime_type`, message: "is required" });
    return undefined;
  }
  if (typeof content !== "string") {
    problems.push({ path: `${path}.content`, message: "must be a string" });
    return undefined;
  }
  const wrong = type === "url" ? checkUrlContent(content) : checkInlineContent(content);
  if (wrong !== undefined) {
    problems.push({ path: `${path}.content`, message: wrong });
    return undefined;
  }
  return { type, mime_type, content };
}

function checkUrlContent(content: string): string | undefined {
  return isHttpsUrl(content) ? undefined : "must be an https URL";
}

function checkInlineContent(content: string): string | undefined {
  // Checks the size before decoding.
  if (content.length > Math.ceil(LIMITS.inlineBytes / 3) * 4) {
    return `must not be longer than ${LIMITS.inlineBytes} bytes`;
  }
  return decodeBase64(content) === undefined ? "must be base64 with padding" : undefined;
}

export function readMetadata(value: unknown, problems: FieldProblem[]): Item | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) {
    problems.push({ path: "metadata", message: "must be an object" });
    return undefined;
  }
  if (Object.keys(value).length > LIMITS.metadataKeys) {
    problems.push({ path: "metadata", message: `must not have more than ${LIMITS.metadataKeys} keys` });
    return undefined;
  }
  if (Buffer.byteLength(JSON.stringify(value)) > LIMITS.metadataBytes) {
    problems.push({ path: "metadata", message: `must not be longer than ${LIMITS.metadataBytes} bytes` });
    return undefined;
  }
  return value;
}

function readList<T>(
  name: string,
  value: unknown,
  limit: number,
  problems: FieldProblem[],
  read: (item: Item, path: string) => T | undefined,
): T[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) {
    problems.push({ path: name, message: "must be an array" });
    return undefined;
  }
  if (value.length > limit) {
    problems.push({ path: name, message: `must not have more than ${limit} entries` });
    return undefined;
  }
  const items: T[] = [];
  for (const [index, item] of value.entries()) {
    const path = `${name}[${index}]`;
    if (!isRecord(item)) {
      problems.push({ path, message: "must be an object" });
      continue;
    }
    const made = read(item, path);
    if (made !== undefined) items.push(made);
  }
  return items;
}

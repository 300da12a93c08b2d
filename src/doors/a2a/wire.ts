/** Converts rounds to A2A's types. */

import type { Approval } from "../../library/index.js";
import type { AgentToolCall } from "../../mail/index.js";
import type { Round, RoundStatus } from "./rounds.js";
import {
  type Artifact,
  ContentTypeNotSupportedError,
  type Message,
  type Part,
  RequestMalformedError,
  Role,
  type Task,
  TaskState,
  type TaskStatus,
} from "./sdk.js";

/** Identifies a round: the journal's key, and the caller's id of the MAIL task. */
export interface RoundLocation {
  readonly key: string;
  readonly contextId: string;
}

const STATES: Readonly<Record<RoundStatus, TaskState>> = {
  working: TaskState.TASK_STATE_WORKING,
  "input-required": TaskState.TASK_STATE_INPUT_REQUIRED,
  "auth-required": TaskState.TASK_STATE_AUTH_REQUIRED,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  canceled: TaskState.TASK_STATE_CANCELED,
};

export function stateOf({ status }: Round): TaskState {
  return STATES[status];
}

export function roundId(key: string, number: number): string {
  return `${key}.${number}`;
}

export function parseRoundId(id: string): { readonly key: string; readonly number: number } | undefined {
  const [, key, number] = /^([0-9a-f-]{36})\.(\d{1,15})$/.exec(id) ?? [];
  return key === undefined || number === undefined ? undefined : { key, number: Number(number) };
}

export function textPart(text: string): Part {
  return {
    content: { $case: "text", value: text },
    metadata: undefined,
    filename: "",
    mediaType: "text/plain",
  };
}

function dataPart(value: unknown): Part {
  return {
    content: { $case: "data", value },
    metadata: undefined,
    filename: "",
    mediaType: "application/json",
  };
}

export function buildMessage(parts: {
  readonly id: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: Role;
  readonly parts: readonly Part[];
}): Message {
  const { id, contextId, taskId, role } = parts;
  return {
    messageId: id,
    contextId,
    taskId,
    role,
    parts: [...parts.parts],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

export function statusOf(location: RoundLocation, round: Round): TaskStatus {
  const { reply, calls, approvals = [] } = round;
  const taskId = roundId(location.key, round.number);
  return {
    state: stateOf(round),
    timestamp: new Date(round.at).toISOString(),
    message:
      reply === undefined
        ? undefined
        : buildMessage({
            id: reply.id,
            contextId: location.contextId,
            taskId,
            role: Role.ROLE_AGENT,
            parts: [textPart(reply.text), ...callParts(calls, approvals)],
          }),
  };
}

/** Calls that wait for a person: for their results, and for approval. */
function callParts(calls: readonly AgentToolCall[], approvals: readonly AgentToolCall[]): Part[] {
  const shown = ({ id, name, args }: AgentToolCall) => ({ call_id: id, name, args });
  return [
    ...(calls.length > 0 ? [dataPart({ calls: calls.map(shown) })] : []),
    ...(approvals.length > 0 ? [dataPart({ approvals: approvals.map(shown) })] : []),
  ];
}

/** Another owner's task as its approver sees it: the calls that wait, and nothing else of it. Its id is the task's key. */
export function waitingTask({ key, owner, title, since, calls }: Approval): Task {
  const ofKind = (wanted: Approval["calls"][number]["kind"]) =>
    calls.filter(({ kind }) => kind === wanted).map(({ call }) => call);
  return {
    id: key,
    contextId: key,
    status: {
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      timestamp: new Date(since).toISOString(),
      message: buildMessage({
        id: `${key}.waiting`,
        contextId: key,
        taskId: key,
        role: Role.ROLE_AGENT,
        parts: [
          textPart(`A task of ${owner} waits for you.`),
          ...callParts(ofKind("breakpoint"), ofKind("approval")),
        ],
      }),
    },
    artifacts: [],
    history: [],
    metadata: { task_owner: owner, ...(title !== undefined && { title }) },
  };
}

/** The reply to an answer for another owner, who alone sees what the task does next. */
export function answeredMessage(key: string, messageId: string): Message {
  return buildMessage({
    id: `${messageId}.answered`,
    contextId: key,
    taskId: key,
    role: Role.ROLE_AGENT,
    parts: [textPart("Answered. The task continues for its owner.")],
  });
}

/** The swarm's answer, if the round has one. */
export function artifactOf(round: Round): Artifact | undefined {
  if (round.status !== "completed" || round.reply === undefined) return undefined;
  return answerArtifact(round.reply.text);
}

/** A round has one answer, so that its name is its id: clients see it grow before it has any other. */
export function answerArtifact(text: string): Artifact {
  return {
    artifactId: "answer",
    name: "answer",
    description: "",
    parts: [textPart(text)],
    metadata: undefined,
    extensions: [],
  };
}

export function taskOf(location: RoundLocation, round: Round, historyLength?: number): Task {
  const id = roundId(location.key, round.number);
  const artifact = artifactOf(round);
  const history = round.messages.map((one) =>
    buildMessage({
      id: one.id,
      contextId: location.contextId,
      taskId: id,
      role: Role.ROLE_USER,
      parts: [textPart(one.text)],
    }),
  );
  return {
    id,
    contextId: location.contextId,
    status: statusOf(location, round),
    artifacts: artifact === undefined ? [] : [artifact],
    history: historyLength === undefined ? history : historyLength === 0 ? [] : history.slice(-historyLength),
    metadata: undefined,
  };
}

/** @throws ContentTypeNotSupportedError for files, because MAIL transports only text */
export function toText(parts: readonly Part[]): string {
  return parts.map(({ content }) => textOfContent(content)).join("\n\n");
}

/** The text of an answer. A file is described, because the work is done and the rest of the answer must not be lost. */
export function answerText(parts: readonly Part[]): string {
  return parts
    .map(({ content, filename, mediaType }) => {
      if (content?.$case !== "raw") return textOfContent(content);
      const name = filename === "" ? "" : ` ${filename}`;
      const type = mediaType === "" ? "" : `, ${mediaType}`;
      return `(file${name}${type}, ${content.value.length} bytes, not transferred)`;
    })
    .join("\n\n");
}

function textOfContent(content: Part["content"]): string {
  switch (content?.$case) {
    case "text":
      return content.value;
    case "data":
      return JSON.stringify(content.value);
    case "url":
      return content.value;
    case "raw":
      throw new ContentTypeNotSupportedError("files are not supported; send text, data or a URL");
    case undefined:
      return "";
    default:
      return content satisfies never;
  }
}

/** A user's decisions on calls that wait for approval: a data part `{"decisions": [{"call_id", "decision", …}]}`. */
export function decisionsIn(parts: readonly Part[]): unknown {
  for (const { content } of parts) {
    if (content?.$case !== "data") continue;
    const value: unknown = content.value;
    if (typeof value === "object" && value !== null && "decisions" in value) return value.decisions;
  }
  return undefined;
}

/** A user's answer to waiting calls: one text, or for several a data part `{"results": [{"call_id", "content"}]}`. */
export function answerIn(
  parts: readonly Part[],
): string | readonly { readonly callId: string; readonly content: string }[] {
  for (const { content } of parts) {
    if (content?.$case !== "data") continue;
    const value: unknown = content.value;
    if (typeof value !== "object" || value === null || !("results" in value)) continue;
    if (!Array.isArray(value.results)) throw new RequestMalformedError("'results' must be a list");
    return value.results.map(resultOf);
  }
  return toText(parts);
}

function resultOf(given: unknown): { readonly callId: string; readonly content: string } {
  if (typeof given === "object" && given !== null && "call_id" in given && "content" in given) {
    const { call_id, content } = given;
    if (typeof call_id === "string" && typeof content === "string") return { callId: call_id, content };
  }
  throw new RequestMalformedError("each of 'results' must have the strings 'call_id' and 'content'");
}

/** MAIL: Tasks, Interswarm. How the end of a task reaches the other swarms that had to do with it. */
import { createAgentAddress, createSystemAddress, formatAgentAddress } from "../../mail/address.js";
import { buildComplete, buildResponse } from "../../mail/build.js";
import { MAIL_ALL_LOCAL_AGENTS, type MAILMessage } from "../../mail/message.js";
import { parseTaskContributor } from "../../mail/owner.js";
import { ownValue } from "../../mail/record.js";
import { SYSTEM_SUBJECTS } from "../../mail/subjects.js";
import type { Command } from "../commands.js";
import { isPerson, type OutstandingRequest, type TaskState } from "../state.js";
import { noAnswerText } from "../system-messages.js";
import { parseEventId } from "../view/event-id.js";
import type { Draft } from "./draft.js";

const ENDINGS: ReadonlySet<string> = new Set([
  SYSTEM_SUBJECTS.taskComplete,
  SYSTEM_SUBJECTS.taskCancelled,
  SYSTEM_SUBJECTS.taskError,
]);

/** Whether a message tells another swarm that the task has ended here. */
export function isEndingNotice(message: MAILMessage): boolean {
  return message.msg_type === "response" && ENDINGS.has(message.message.subject);
}

/**
 * When the owner ends the task, every swarm that contributed is told; when we work on another's task, the swarm that
 * asked gets the finish message. Completions do not cross as such: the wrapper has no type for them, so they are
 * responses with a subject of the system (mail.md 14 #31).
 */
export function tellOtherSwarms(draft: Draft, ending: MAILMessage, subject: string): void {
  tell(draft, swarmsToTell(draft.state), ending, subject);
}

function tell(draft: Draft, swarms: readonly string[], ending: MAILMessage, subject: string): void {
  const { state, rules } = draft;
  for (const swarm of swarms) {
    const peer = ownValue(state.peers, swarm);
    const id = draft.id();
    const message = buildResponse({
      id,
      timestamp: draft.timestamp,
      taskId: state.taskId,
      sender: ending.message.sender,
      recipient: createAgentAddress(peer?.address ?? formatAgentAddress(MAIL_ALL_LOCAL_AGENTS, swarm)),
      subject,
      body: ending.message.body,
      requestId: peer?.requestId ?? id,
      senderSwarm: rules.swarm,
      recipientSwarm: swarm,
      routingInfo: { origin_swarm: rules.swarm, remote_swarm: swarm },
    });
    draft.send(message, { to: [], remote: [swarm] });
  }
}

function swarmsToTell(state: TaskState): readonly string[] {
  if (state.instance.role === "swarm") return [state.instance.id];
  const swarms = new Set(state.remoteSwarms);
  for (const contributor of state.contributors) swarms.add(parseTaskContributor(contributor).swarm);
  swarms.delete(state.swarm);
  return [...swarms];
}

/**
 * The owner's end of an adopted task: into every history, with nobody prompted and nobody told back. Swarms that we
 * asked and that the owner does not know of hear it from us.
 */
export function conclude(draft: Draft, command: Extract<Command, { type: "conclude" }>): void {
  const { message, status, told = [] } = command;
  const { state } = draft;
  if (status === "completed") {
    draft.emit({ t: "completed", at: draft.at, message });
  } else {
    draft.emit({ t: "cancelled", at: draft.at, by: message.message.sender.address, message });
  }
  const knows = new Set([state.instance.id, parseTaskContributor(state.owner).swarm, ...told]);
  const others = state.remoteSwarms.filter((swarm) => !knows.has(swarm));
  const { subject, body } = message.message;
  tell(draft, others, draft.systemComplete({ subject, body }), subject);
}

/**
 * How many swarms a message to this one has come through. What goes back to the swarm that mail last came from does not
 * get further away; everything else is one hop further than that mail was (decisions E9).
 */
export function hopsTo(state: TaskState, swarm: string): number {
  let last: { readonly swarm: string; readonly hops: number; readonly number: number } | undefined;
  for (const [from, { hops, number }] of Object.entries(state.peers)) {
    if (hops === undefined || number === undefined) continue;
    if (last === undefined || number > last.number) last = { swarm: from, hops, number };
  }
  if (last === undefined) return 1;
  return last.swarm === swarm ? last.hops : last.hops + 1;
}

/** Whether what is left to happen in a task happens elsewhere or not at all: then a last answer ends it. */
type IsIdle = (state: TaskState) => boolean;

/** A person who wrote to other swarms gets one answer: what those said. A failure over there is one here. */
export function replyToPerson(
  draft: Draft,
  command: Extract<Command, { type: "reply_to_person" }>,
  isIdle: IsIdle,
  complete: (draft: Draft, message: MAILMessage) => void,
): void {
  const { state, rules } = draft;
  const { message } = command;
  draft.contribute(command.contributors);
  draft.send(message, { to: [], remote: [] });
  // A late answer is on record, and that is all; so is one that no person waits for.
  if (state.status !== "running" || !isToPerson(message)) return;
  const { subject, body, sender } = message.message;
  if (subject === SYSTEM_SUBJECTS.taskError || subject === SYSTEM_SUBJECTS.taskCancelled) {
    draft.trouble ??= { code: "remote_failed", reason: `${sender.address} did not finish: ${body}` };
    return;
  }
  if (!isIdle(state)) return;
  const replies = state.replies ?? [];
  const [only] = replies;
  const finishMessage =
    replies.length === 1 && only !== undefined
      ? only.body
      : replies.map((reply) => `${reply.from}: ${reply.body}`).join("\n\n");
  complete(
    draft,
    buildComplete({
      id: draft.id(),
      timestamp: draft.timestamp,
      taskId: state.taskId,
      sender: createSystemAddress(rules.swarm),
      swarm: rules.swarm,
      finishMessage,
    }),
  );
}

function isToPerson({ message }: MAILMessage): boolean {
  return "recipient" in message && isPerson(message.recipient);
}

/** When the next answer of another swarm is overdue; nothing if none is awaited. */
export function nextReplyDue(state: TaskState, replyTime: number | undefined): number | undefined {
  if (replyTime === undefined || state.remoteSwarms.length === 0) return undefined;
  let first: number | undefined;
  for (const { acceptedAt } of state.outstanding) {
    if (acceptedAt !== undefined && (first === undefined || acceptedAt < first)) first = acceptedAt;
  }
  return first === undefined ? undefined : first + replyTime;
}

/** Decisions E6. A late answer is delivered all the same: nothing here forgets the other swarm. */
export function tellOfMissingReplies(draft: Draft): void {
  const { state, rules } = draft;
  const { replyTime } = rules.limits;
  if (replyTime === undefined || state.status !== "running") return;
  const isOverdue = ({ acceptedAt }: OutstandingRequest) =>
    acceptedAt !== undefined && acceptedAt + replyTime <= draft.at;
  for (const { from, to, requestId } of state.outstanding.filter(isOverdue)) {
    const text = noAnswerText(to, replyTime);
    if (rules.agents.has(from)) draft.tell(createAgentAddress(from), text, requestId, to);
    else draft.trouble ??= { code: "no_answer", reason: text.body };
  }
}

/** Decisions E7: each event once, in the order of the swarm that it comes from. */
export function copyEvents(draft: Draft, command: Extract<Command, { type: "copy_events" }>): void {
  const { swarm } = command;
  for (const { id, event, data } of command.events) {
    if (!isLater(id, ownValue(draft.state.copied, swarm))) continue;
    draft.emit({ t: "remote_event", at: draft.at, swarm, id, event, data });
  }
}

function isLater(id: string, last: string | undefined): boolean {
  const place = parseEventId(id);
  const seen = last === undefined ? undefined : parseEventId(last);
  if (place === undefined) return false;
  if (seen === undefined) return true;
  return place.number !== seen.number ? place.number > seen.number : place.index > seen.index;
}

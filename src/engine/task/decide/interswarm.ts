/** MAIL: Tasks, Interswarm. How the other swarms of a task are notified of its end. */

import { ownValue } from "../../../base/index.js";
import {
  buildComplete,
  buildResponse,
  createAgentAddress,
  createSystemAddress,
  formatAgentAddress,
  MAIL_ALL_LOCAL_AGENTS,
  type MAILMessage,
  parseAgentAddress,
  parseTaskContributor,
  SYSTEM_SUBJECTS,
} from "../../../mail/index.js";
import type { Command } from "../commands.js";
import { provenDeliveries } from "../requests.js";
import type { EngineLimits } from "../rules.js";
import { isPerson, type OutstandingRequest, type TaskState } from "../state.js";
import { isErrorSubject, noAnswerText, noReplyText, type SystemText } from "../system-messages.js";
import { parseEventId } from "../view/event-id.js";
import type { DecisionBuilder } from "./decision-builder.js";

/**
 * When the owner ends the task, every swarm that contributed is notified; when we work on another swarm's task, the
 * swarm that asked gets the finish message. The wrapper has no type for completions, so they cross as responses with
 * a system subject (REF-12).
 */
export function notifyOtherSwarms(draft: DecisionBuilder, ending: MAILMessage, subject: string): void {
  tell(draft, swarmsToTell(draft.state), ending, subject);
}

function tell(draft: DecisionBuilder, swarms: readonly string[], ending: MAILMessage, subject: string): void {
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
 * Ends an adopted task as its owner did. The ending enters every history, no agent gets a turn, and the owner gets no
 * notice back. Swarms that this task asked, and that the owner does not know of, are notified from here.
 */
export function conclude(draft: DecisionBuilder, command: Extract<Command, { type: "conclude" }>): void {
  const { message, status, told = [] } = command;
  const { state } = draft;
  // Where our part has ended before, only the swarms that we asked are still to be notified.
  const isOpen = state.status === "running" || state.status === "paused";
  if (isOpen && status === "completed") {
    draft.emit({ t: "completed", at: draft.at, message });
  } else if (isOpen) {
    draft.emit({ t: "cancelled", at: draft.at, by: message.message.sender.address, message });
  }
  const owner = parseTaskContributor(state.owner).swarm;
  const knows = new Set([state.instance.id, owner, ...told, ...(state.notified ?? [])]);
  const others = state.remoteSwarms.filter((swarm) => !knows.has(swarm));
  const { subject, body } = message.message;
  tell(draft, others, draft.systemComplete({ subject, body }), subject);
}

/**
 * How many swarms a message to this one has passed through. Mail back to the swarm that the last mail came from adds
 * no hop; all other mail is one hop further than that mail was (decision E9).
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

/** Whether no local work is left in the task. Then the last awaited answer ends it. */
type IsIdle = (state: TaskState) => boolean;

/** A user that wrote to other swarms gets one answer that joins theirs. A failure in another swarm fails the task. */
export function replyToPerson(
  draft: DecisionBuilder,
  command: Extract<Command, { type: "reply_to_person" }>,
  isIdle: IsIdle,
  complete: (draft: DecisionBuilder, message: MAILMessage) => void,
): void {
  const { state, rules } = draft;
  const { message } = command;
  draft.contribute(command.contributors);
  noteDelivered(draft, message);
  draft.send(message, { to: [], remote: [] });
  // A late answer, or one that no user waits for, is only recorded.
  if (state.status !== "running" || !isToPerson(message)) return;
  const { subject, body, sender } = message.message;
  const isEnd = subject === SYSTEM_SUBJECTS.taskError || subject === SYSTEM_SUBJECTS.taskCancelled;
  if (isEnd || isErrorSubject(subject)) {
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

/** An answer that is faster than the outbox proves that the question was delivered. */
export function noteDelivered(draft: DecisionBuilder, answer: MAILMessage): void {
  for (const { message, swarm } of provenDeliveries(draft.state, answer)) {
    draft.emit({ t: "carried", at: draft.at, message: message.id, swarm, ok: true });
  }
}

function isToPerson({ message }: MAILMessage): boolean {
  return "recipient" in message && isPerson(message.recipient);
}

/** How long to wait for answers. */
export type ReplyLimits = Pick<EngineLimits, "replyTimeout" | "replyTimeouts">;

/** When the answer to a request is overdue; nothing while it is not accepted, or where the task waits forever. */
export function replyDue({ acceptedAt, to }: OutstandingRequest, limits: ReplyLimits): number | undefined {
  const timeout = replyTimeoutFor(to, limits);
  return acceptedAt === undefined || timeout === 0 ? undefined : acceptedAt + timeout;
}

function replyTimeoutFor(to: string, { replyTimeout, replyTimeouts }: ReplyLimits): number {
  const { swarm } = parseAgentAddress(to);
  return (swarm === undefined ? undefined : ownValue(replyTimeouts, swarm)) ?? replyTimeout;
}

/** When the next answer of another swarm is overdue; nothing if none is awaited. */
export function nextReplyDue(state: TaskState, limits: ReplyLimits): number | undefined {
  if (state.remoteSwarms.length === 0) return undefined;
  let first: number | undefined;
  for (const request of state.outstanding) {
    const due = replyDue(request, limits);
    if (due !== undefined && (first === undefined || due < first)) first = due;
  }
  return first;
}

/** The swarms that have accepted a request of a running task and owe the answer. */
export function awaitedSwarms({ status, remoteSwarms, outstanding }: TaskState): ReadonlySet<string> {
  const swarms = new Set<string>();
  if (status !== "running" || remoteSwarms.length === 0) return swarms;
  for (const { to, acceptedAt } of outstanding) {
    const { swarm } = parseAgentAddress(to);
    if (acceptedAt !== undefined && swarm !== undefined) swarms.add(swarm);
  }
  return swarms;
}

/**
 * Notifies the senders of overdue requests (decision E6). A late answer is still delivered, because the remote swarm stays
 * on record.
 */
export function notifyOfMissingReplies(draft: DecisionBuilder): void {
  const { state, rules } = draft;
  if (state.status !== "running") return;
  const isOverdue = (request: OutstandingRequest) =>
    (replyDue(request, rules.limits) ?? Number.POSITIVE_INFINITY) <= draft.at;
  for (const request of state.outstanding.filter(isOverdue)) {
    giveUp(draft, request, noAnswerText(request.to, replyTimeoutFor(request.to, rules.limits)));
  }
}

/** The swarm has nothing left to do for the task, so these requests get no answer. */
export function notifyOfNoReply(
  draft: DecisionBuilder,
  { swarm, requestIds }: Extract<Command, { type: "no_reply" }>,
): void {
  const { state } = draft;
  if (state.status !== "running") return;
  const isMeant = ({ requestId, to, acceptedAt }: OutstandingRequest) =>
    acceptedAt !== undefined && requestIds.includes(requestId) && parseAgentAddress(to).swarm === swarm;
  for (const request of state.outstanding.filter(isMeant)) giveUp(draft, request, noReplyText(request.to));
}

function giveUp(draft: DecisionBuilder, { from, to, requestId }: OutstandingRequest, text: SystemText): void {
  if (draft.rules.agents.has(from)) draft.tell(createAgentAddress(from), text, requestId, to);
  else draft.trouble ??= { code: "no_answer", reason: text.body };
}

/** Copies each event once, in the order of the swarm that sent it (decision E7). */
export function copyEvents(draft: DecisionBuilder, command: Extract<Command, { type: "copy_events" }>): void {
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

/**
 * What an agent can tell from its memory of a task: which message it is working on, whom it asked, who answered.
 * Pure functions of the turn, so an agent built on them needs no state of its own and survives a restart.
 *
 * Terms
 * - round: everything since the last message of a user or admin (for agents that get none: since the last request).
 */
import type { HistoryItem, ResultItem, Turn } from "../engine/agent.js";
import { normaliseAddress, parseAgentAddress } from "../mail/address.js";
import type { MAILMessage } from "../mail/message.js";
import { FAILED_AGENT, SYSTEM_SUBJECTS } from "../mail/subjects.js";
import { isMailToolName } from "../mail/tool-table.js";

type MessageItem = Extract<HistoryItem, { kind: "message" }>;

/** Who sent it, as the recipient would address an answer: `weather`, `weather@elsewhere`, `ann`. */
export function senderOf(message: MAILMessage, localSwarm: string): string {
  const { sender, sender_swarm: swarm } = message.message;
  if (sender.address_type !== "agent") return sender.address;
  const named = parseAgentAddress(sender.address).swarm !== undefined || swarm === undefined;
  return normaliseAddress(named ? sender.address : `${sender.address}@${swarm}`, localSwarm);
}

/** Notices that only say "your actions are done, go on": the agent is still busy with an earlier message. */
const RESULT_NOTICES: ReadonlySet<string> = new Set([
  SYSTEM_SUBJECTS.actionComplete,
  SYSTEM_SUBJECTS.actionCompleteBroadcast,
]);

function isFromSystem(message: MAILMessage): boolean {
  return message.message.sender.address_type === "system";
}

/** The message that the agent is to deal with: the newest of the turn, or what it was at when its actions ended. */
export function messageAtHand(turn: Turn): MAILMessage {
  const newest = turn.messages[turn.messages.length - 1] ?? turn.messages[0];
  if (!isFromSystem(newest) || !RESULT_NOTICES.has(newest.message.subject)) return newest;
  return lastPersonal(turn) ?? newest;
}

/**
 * The newest message that somebody other than the system wrote to the agent. How an earlier round ended is in the
 * memory of every agent, also of one whose action was under way then; it is nothing to answer.
 */
export function lastPersonal(turn: Turn): MAILMessage | undefined {
  return turn.history.findLast(
    (item): item is MessageItem =>
      item.kind === "message" &&
      !isFromSystem(item.message) &&
      item.message.msg_type !== "broadcast_complete",
  )?.message;
}

/** Results of actions among those of the previous turn; results of MAIL tools only say that mail was sent. */
export function actionResults(turn: Turn): readonly ResultItem[] {
  return turn.results.filter(({ name }) => !isMailToolName(name));
}

export interface Round {
  /** The message that began it; absent if memory does not reach back that far. */
  readonly opener: MAILMessage | undefined;
  /** The part of the agent's memory that belongs to it, the opener first. */
  readonly items: readonly HistoryItem[];
}

export function currentRound(turn: Turn): Round {
  const byPerson = turn.history.findLastIndex(
    (item) =>
      item.kind === "message" &&
      (item.message.message.sender.address_type === "user" ||
        item.message.message.sender.address_type === "admin"),
  );
  const start =
    byPerson >= 0
      ? byPerson
      : turn.history.findLastIndex((item) => item.kind === "message" && item.message.msg_type === "request");
  if (start < 0) return { opener: undefined, items: turn.history };
  const first = turn.history[start];
  return {
    opener: first?.kind === "message" ? first.message : undefined,
    items: turn.history.slice(start),
  };
}

/** Responses of the round in order, with who sent them. */
export function answersOf(turn: Turn, round: Round): readonly { from: string; body: string }[] {
  return round.items.flatMap((item) =>
    item.kind === "message" && item.message.msg_type === "response" && !isFromSystem(item.message)
      ? [{ from: senderOf(item.message, turn.swarm), body: item.message.message.body }]
      : [],
  );
}

/** Agents of which the system said in this round that they will not answer. */
function failuresOf(round: Round): readonly string[] {
  return round.items.flatMap((item) => {
    if (item.kind !== "message" || !isFromSystem(item.message)) return [];
    const failed = item.message.message.routing_info?.[FAILED_AGENT];
    return typeof failed === "string" ? [failed] : [];
  });
}

/** Whom the agent sent a request in this round and may still hear from, in the order of asking. */
export function unanswered(turn: Turn, round: Round): readonly string[] {
  const refused = new Set(
    round.items.flatMap((item) => (item.kind === "result" && !item.ok ? [item.callId] : [])),
  );
  const open = round.items.flatMap((item) =>
    item.kind === "answer"
      ? item.calls.flatMap(({ id, name, args }) =>
          name === "send_request" && !refused.has(id) && typeof args.target === "string"
            ? [normaliseAddress(args.target, turn.swarm)]
            : [],
        )
      : [],
  );
  const settled = [...answersOf(turn, round).map(({ from }) => from), ...failuresOf(round)];
  for (const from of settled) {
    const index = open.indexOf(from);
    if (index >= 0) open.splice(index, 1);
  }
  return [...new Set(open)];
}

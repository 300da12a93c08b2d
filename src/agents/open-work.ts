/**
 * Derives an agent's open work from its history: its current message, its requests and their answers. Pure functions of
 * the turn, so agents need no state and survive a restart.
 *
 * Terms
 * - round: everything since the last message of a user or admin, or since the last request for agents without such
 *   messages.
 */
import type { HistoryItem, ResultItem, Turn } from "../engine/index.js";
import type { MAILMessage } from "../mail/index.js";
import {
  FAILED_AGENT,
  isMailToolName,
  normalizeAddress,
  parseAgentAddress,
  SYSTEM_SUBJECTS,
} from "../mail/index.js";

type MessageItem = Extract<HistoryItem, { kind: "message" }>;

/** The sender as the recipient would address it: `weather`, `weather@elsewhere`, `ann`. */
export function senderOf(message: MAILMessage, localSwarm: string): string {
  const { sender, sender_swarm: swarm } = message.message;
  if (sender.address_type !== "agent") return sender.address;
  const named = parseAgentAddress(sender.address).swarm !== undefined || swarm === undefined;
  return normalizeAddress(named ? sender.address : `${sender.address}@${swarm}`, localSwarm);
}

/** Notices that actions have ended. The agent is still working on an earlier message. */
const RESULT_NOTICES: ReadonlySet<string> = new Set([
  SYSTEM_SUBJECTS.actionComplete,
  SYSTEM_SUBJECTS.actionCompleteBroadcast,
]);

function isFromSystem(message: MAILMessage): boolean {
  return message.message.sender.address_type === "system";
}

/** The message to answer: the newest of the turn, or the one that led to the actions that have ended. */
export function currentMessage(turn: Turn): MAILMessage {
  const newest = turn.messages[turn.messages.length - 1] ?? turn.messages[0];
  if (!isFromSystem(newest) || !RESULT_NOTICES.has(newest.message.subject)) return newest;
  return lastFromCorrespondent(turn) ?? newest;
}

/**
 * The newest message to the agent that does not come from the system. Completions of earlier rounds are in every
 * history and are skipped: they need no answer.
 */
export function lastFromCorrespondent(turn: Turn): MAILMessage | undefined {
  return turn.history.findLast(
    (item): item is MessageItem =>
      item.kind === "message" &&
      !isFromSystem(item.message) &&
      item.message.msg_type !== "broadcast_complete",
  )?.message;
}

/** Results of actions in the previous turn. Results of MAIL tools only confirm that mail was sent. */
export function actionResults(turn: Turn): readonly ResultItem[] {
  return turn.results.filter(({ name }) => !isMailToolName(name));
}

export interface OpenWork {
  /** The message that began the round; absent if the history does not reach back that far. */
  readonly opener: MAILMessage | undefined;
  /** The round's part of the history, beginning with the opener. */
  readonly items: readonly HistoryItem[];
}

export function openWorkOf(turn: Turn): OpenWork {
  const byUser = turn.history.findLastIndex(
    (item) =>
      item.kind === "message" &&
      (item.message.message.sender.address_type === "user" ||
        item.message.message.sender.address_type === "admin"),
  );
  const start =
    byUser >= 0
      ? byUser
      : turn.history.findLastIndex((item) => item.kind === "message" && item.message.msg_type === "request");
  if (start < 0) return { opener: undefined, items: turn.history };
  const first = turn.history[start];
  return {
    opener: first?.kind === "message" ? first.message : undefined,
    items: turn.history.slice(start),
  };
}

/** Responses of the round with their senders, in order. */
export function answersOf(turn: Turn, round: OpenWork): readonly { from: string; body: string }[] {
  return round.items.flatMap((item) =>
    item.kind === "message" && item.message.msg_type === "response" && !isFromSystem(item.message)
      ? [{ from: senderOf(item.message, turn.swarm), body: item.message.message.body }]
      : [],
  );
}

/** Agents that failed in this round, according to the system. */
function failuresOf(round: OpenWork): readonly string[] {
  return round.items.flatMap((item) => {
    if (item.kind !== "message" || !isFromSystem(item.message)) return [];
    const failed = item.message.message.routing_info?.[FAILED_AGENT];
    return typeof failed === "string" ? [failed] : [];
  });
}

/** Agents with an unanswered request of this round, in the order of the requests. */
export function unanswered(turn: Turn, round: OpenWork): readonly string[] {
  const refused = new Set(
    round.items.flatMap((item) => (item.kind === "result" && !item.ok ? [item.callId] : [])),
  );
  const open = round.items.flatMap((item) =>
    item.kind === "answer"
      ? item.calls.flatMap(({ id, name, args }) =>
          name === "send_request" && !refused.has(id) && typeof args.target === "string"
            ? [normalizeAddress(args.target, turn.swarm)]
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

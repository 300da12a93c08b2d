/** An entry in a few words: its kind, who it is about, and what it says. */
import type { EntryKind } from "../../engine/pure.js";
import type { JournalEntry } from "./journal-entry.js";
import { recipientsText, senderText, subjectText } from "./mail-words.js";
import { describeCall, firstLine } from "./words.js";

const KINDS: Readonly<Record<EntryKind, string>> = {
  opened: "Opened",
  approvers: "Approvers",
  resumed: "Continued",
  sent: "Message",
  turn: "Turn",
  turn_failed: "Failed turn",
  result: "Result",
  action_started: "Action started",
  action_finished: "Action finished",
  approval_asked: "Approval asked",
  approval_answered: "Approval answered",
  paused: "Paused",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  step_limit: "Step limit",
  idle: "Idle",
  recovered: "Recovered",
  parked: "Parked",
  lent: "Lent",
  released: "Given back",
  carried: "Delivery",
  remote_event: "Remote event",
  contributed: "Contributors",
  compacted: "Memory summarized",
  usage: "Model calls",
  budget: "Budget",
  redefined: "New definition",
};

export function kindText(kind: EntryKind): string {
  return KINDS[kind] ?? kind;
}

export function whoText(entry: JournalEntry): string {
  if (entry.t === "sent") return `${senderText(entry.message)} → ${recipientsText(entry.message)}`;
  if ("agent" in entry) return entry.agent;
  if ("swarm" in entry) return `@${entry.swarm}`;
  return entry.t === "completed" ? (entry.call?.agent ?? "") : "";
}

export function summaryText(entry: JournalEntry): string {
  switch (entry.t) {
    case "opened":
      return `by ${entry.task.owner}, entrypoint ${entry.task.entrypoint}`;
    case "sent": {
      const { subject, body } = entry.message.message;
      return subject === "" ? firstLine(body) : `${firstLine(subjectText(subject))} · ${firstLine(body)}`;
    }
    case "turn":
      return [...entry.calls.map((call) => describeCall(call)), firstLine(entry.text ?? "")]
        .filter((word) => word !== "")
        .join(" · ");
    case "turn_failed":
      return `${entry.code}: ${firstLine(entry.message)}`;
    case "result":
    case "action_finished":
      return `${entry.ok ? "✓" : "✗"} ${entry.name}: ${firstLine(entry.content)}`;
    case "action_started":
      return entry.attempt > 1 ? `${entry.name}, attempt ${entry.attempt}` : entry.name;
    case "paused":
      return entry.reason === undefined
        ? (entry.approvals ?? entry.calls).map((call) => describeCall(call)).join(" · ")
        : firstLine(entry.message.message.body);
    case "approval_asked":
      return describeCall({ id: entry.call, name: entry.name, args: entry.args });
    case "approval_answered":
      return [
        `${entry.name}: ${entry.decision}`,
        ...(entry.by === undefined ? [] : [`by ${entry.by}`]),
        ...(entry.args === undefined ? [] : ["with changed arguments"]),
        ...(entry.reason === undefined ? [] : [firstLine(entry.reason)]),
      ].join(" · ");
    case "completed":
      return firstLine(entry.message.message.body);
    case "failed":
      return `${entry.code}: ${firstLine(entry.reason)}`;
    case "cancelled":
      return `by ${entry.by}`;
    case "carried":
      return entry.ok ? "taken over" : `not delivered: ${firstLine(entry.reason ?? "")}`;
    case "remote_event":
      return entry.event.replaceAll("_", " ");
    case "contributed":
      return entry.contributors.join(", ");
    case "approvers":
      return `${entry.approvers.length === 0 ? "none but the owner" : entry.approvers.join(", ")}, by ${entry.by}`;
    case "compacted":
      return `up to #${entry.upTo}: ${firstLine(entry.summary)}`;
    case "redefined":
      return entry.definition;
    case "lent":
      return `#${entry.number}, attempt ${entry.attempt}`;
    case "step_limit":
      return `notice #${entry.notice}`;
    default:
      return "";
  }
}

export function titleText(entry: JournalEntry): string {
  switch (entry.t) {
    case "turn":
      return `Turn of ${entry.agent}`;
    case "turn_failed":
      return `Failed turn of ${entry.agent}`;
    case "sent":
      return `${entry.message.msg_type === "broadcast_complete" ? "completion" : entry.message.msg_type} of ${senderText(entry.message)}`.replace(
        /^./,
        (letter) => letter.toUpperCase(),
      );
    case "action_started":
    case "action_finished":
    case "result":
      return `${entry.name}${entry.t === "action_started" ? "" : entry.ok ? ", result" : ", failed"}`;
    default:
      return kindText(entry.t);
  }
}

/** For screen readers and search: everything in one line. */
export function lineText(entry: JournalEntry): string {
  return `#${entry.n} ${kindText(entry.t)} ${whoText(entry)} ${summaryText(entry)}`;
}

export function isFailure(entry: JournalEntry): boolean {
  return (
    entry.t === "turn_failed" ||
    entry.t === "failed" ||
    ((entry.t === "action_finished" || entry.t === "carried" || entry.t === "result") && !entry.ok)
  );
}

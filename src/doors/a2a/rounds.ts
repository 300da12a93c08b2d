/** An A2A task is one round of a MAIL task, from a user's message to the next completion (decision H2). */
import type { Entry } from "../../engine/index.js";
import type { AgentToolCall, MAILMessage } from "../../mail/index.js";

export type RoundStatus =
  | "working"
  | "input-required"
  | "auth-required"
  | "completed"
  | "failed"
  | "canceled";

export interface Round {
  /** Journal number of the message that began the round. */
  readonly number: number;
  readonly status: RoundStatus;
  /** When the status changed, in milliseconds since the epoch. */
  readonly at: number;
  /** The user's messages, in order. */
  readonly messages: readonly { readonly id: string; readonly text: string }[];
  /** The swarm's last message: its answer, its question, or the reason of a failure. */
  readonly reply?: { readonly id: string; readonly text: string };
  /** The calls that wait for a user. */
  readonly calls: readonly AgentToolCall[];
  /** The calls that run once the user has approved them. */
  readonly approvals?: readonly AgentToolCall[];
}

export function hasEnded({ status }: Round): boolean {
  return status === "completed" || status === "failed" || status === "canceled";
}

/** Derives the rounds of a journal, entry by entry. */
export class RoundReader {
  readonly all: Round[] = [];

  get last(): Round | undefined {
    return this.all.at(-1);
  }

  at(number: number): Round | undefined {
    return this.all.find((round) => round.number === number);
  }

  /** @returns the round that changed */
  apply(number: number, entry: Entry): Round | undefined {
    switch (entry.t) {
      case "sent":
        return isFromUser(entry.message) ? this.#userMessage(number, entry.at, entry.message) : undefined;
      case "result":
        return entry.breakpoint === true
          ? this.#addMessage(entry.at, { id: entry.call, text: entry.content })
          : undefined;
      case "paused":
        return this.#changeStatus(
          entry.reason === "credentials" ? "auth-required" : "input-required",
          entry.at,
          entry.message,
          entry.calls,
          entry.approvals,
        );
      case "resumed":
        return this.#resumed(entry.at);
      case "completed":
        return this.#changeStatus("completed", entry.at, entry.message);
      case "failed":
        return this.#changeStatus("failed", entry.at, entry.message);
      case "cancelled":
        return this.#changeStatus("canceled", entry.at, entry.message);
      default:
        return undefined;
    }
  }

  #userMessage(number: number, at: number, { id, message }: MAILMessage): Round {
    const added = { id, text: message.body };
    if (this.last === undefined || hasEnded(this.last)) {
      const round: Round = { number, status: "working", at, messages: [added], calls: [] };
      this.all.push(round);
      return round;
    }
    return this.#addMessage(at, added) ?? this.last;
  }

  /** A user's message in a running round. A round that waited for it continues. */
  #addMessage(at: number, added: Round["messages"][number]): Round | undefined {
    const { last } = this;
    if (last === undefined || hasEnded(last)) return undefined;
    const { reply: _answered, ...rest } = last;
    return this.#replace({
      ...rest,
      status: "working",
      at,
      calls: [],
      messages: [...last.messages, added],
    });
  }

  /** The round was resumed. After a user's message it is already running. */
  #resumed(at: number): Round | undefined {
    const { last } = this;
    if (last?.status !== "auth-required" && last?.status !== "input-required") return undefined;
    const { reply: _why, approvals: _asked, ...rest } = last;
    return this.#replace({ ...rest, status: "working", at, calls: [] });
  }

  #changeStatus(
    status: RoundStatus,
    at: number,
    { id, message }: MAILMessage,
    calls: readonly AgentToolCall[] = [],
    approvals: readonly AgentToolCall[] = [],
  ): Round | undefined {
    const { last } = this;
    if (last === undefined || hasEnded(last)) return undefined;
    return this.#replace({ ...last, status, at, calls, approvals, reply: { id, text: message.body } });
  }

  #replace(round: Round): Round {
    this.all[this.all.length - 1] = round;
    return round;
  }
}

function isFromUser({ message }: MAILMessage): boolean {
  return message.sender.address_type === "user" || message.sender.address_type === "admin";
}

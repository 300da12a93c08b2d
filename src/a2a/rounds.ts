/** Decisions H2: an A2A task is one round of a MAIL task, from a person's message to the next completion. */
import type { Entry } from "../engine/entries.js";
import type { AgentToolCall } from "../mail/calls.js";
import type { MAILMessage } from "../mail/message.js";

export type RoundStatus =
  | "working"
  | "input-required"
  | "auth-required"
  | "completed"
  | "failed"
  | "canceled";

export interface Round {
  /** Journal number of the message that began it. */
  readonly number: number;
  readonly status: RoundStatus;
  /** When the status changed, in milliseconds since the epoch. */
  readonly at: number;
  /** What persons said, in order. */
  readonly said: readonly { readonly id: string; readonly text: string }[];
  /** What the swarm said last: its answer, its question, or why it failed. */
  readonly reply?: { readonly id: string; readonly text: string };
  /** The calls that wait for a person. */
  readonly calls: readonly AgentToolCall[];
}

export function isOver({ status }: Round): boolean {
  return status === "completed" || status === "failed" || status === "canceled";
}

/** Reads a journal from its beginning, entry by entry. */
export class Rounds {
  readonly all: Round[] = [];

  get last(): Round | undefined {
    return this.all.at(-1);
  }

  at(number: number): Round | undefined {
    return this.all.find((round) => round.number === number);
  }

  /** @returns the round that is another one now */
  see(number: number, entry: Entry): Round | undefined {
    switch (entry.t) {
      case "sent":
        return isFromPerson(entry.message) ? this.#said(number, entry.at, entry.message) : undefined;
      case "result":
        return entry.breakpoint === true
          ? this.#heard(entry.at, { id: entry.call, text: entry.content })
          : undefined;
      case "paused":
        return this.#became(
          entry.reason === undefined ? "input-required" : "auth-required",
          entry.at,
          entry.message,
          entry.calls,
        );
      case "resumed":
        return this.#wentOn(entry.at);
      case "completed":
        return this.#became("completed", entry.at, entry.message);
      case "failed":
        return this.#became("failed", entry.at, entry.message);
      case "cancelled":
        return this.#became("canceled", entry.at, entry.message);
      default:
        return undefined;
    }
  }

  #said(number: number, at: number, { id, message }: MAILMessage): Round {
    const said = { id, text: message.body };
    if (this.last === undefined || isOver(this.last)) {
      const round: Round = { number, status: "working", at, said: [said], calls: [] };
      this.all.push(round);
      return round;
    }
    return this.#heard(at, said) ?? this.last;
  }

  /** A person's word in a round that is under way; one that waited for it goes on. */
  #heard(at: number, said: Round["said"][number]): Round | undefined {
    const { last } = this;
    if (last === undefined || isOver(last)) return undefined;
    const { reply: _answered, ...rest } = last;
    return this.#replace({ ...rest, status: "working", at, calls: [], said: [...last.said, said] });
  }

  /** What it was held up for is there. After a person's word it is under way already. */
  #wentOn(at: number): Round | undefined {
    const { last } = this;
    if (last?.status !== "auth-required") return undefined;
    const { reply: _why, ...rest } = last;
    return this.#replace({ ...rest, status: "working", at });
  }

  #became(
    status: RoundStatus,
    at: number,
    { id, message }: MAILMessage,
    calls: readonly AgentToolCall[] = [],
  ): Round | undefined {
    const { last } = this;
    if (last === undefined || isOver(last)) return undefined;
    return this.#replace({ ...last, status, at, calls, reply: { id, text: message.body } });
  }

  #replace(round: Round): Round {
    this.all[this.all.length - 1] = round;
    return round;
  }
}

function isFromPerson({ message }: MAILMessage): boolean {
  return message.sender.address_type === "user" || message.sender.address_type === "admin";
}

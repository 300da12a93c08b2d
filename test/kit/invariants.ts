/**
 * Invariants of every task, whatever commands it gets. Each function throws with the reason if its invariant is
 * violated.
 */

import type { Entry, Sent } from "../../src/engine/task/entries.js";
import type { SwarmRules } from "../../src/engine/task/rules.js";
import { type AgentState, comesBefore, type TaskState } from "../../src/engine/task/state.js";
import { parseAgentAddress } from "../../src/mail/address.js";
import { isEndingNotice } from "../../src/mail/subjects.js";

function law(holds: boolean, broken: () => string): void {
  if (!holds) throw new Error(`invariant violated: ${broken()}`);
}

/** MAIL, "Priority and Ordering": a mailbox is ordered by tier, then number. */
export function mailboxesAreInOrder(state: TaskState): void {
  for (const [name, { mailbox }] of state.agents) {
    for (let at = 1; at < mailbox.length; at++) {
      const before = mailbox[at - 1];
      const mail = mailbox[at];
      if (before === undefined || mail === undefined) continue;
      law(comesBefore(before, mail), () => `mailbox of ${name}: ${mail.number} follows ${before.number}`);
    }
  }
}

/** Every call has exactly one result, or is pending, running, or open (decision B4). */
export function callsHaveOneResult(state: TaskState): void {
  for (const [name, agent] of state.agents) {
    if (agent.history[0]?.kind === "summary") continue;
    const unanswered = unansweredCalls(name, agent);
    const live = [
      ...(agent.turn?.running ?? []).map(({ call }) => call.id),
      ...(agent.turn?.asked ?? []).map(({ call }) => call.id),
      ...(agent.turn?.pending ?? []).map((call) => call.id),
      ...agent.open.map((call) => call.id),
    ];
    law(
      [...unanswered].sort().join() === live.sort().join(),
      () => `calls of ${name} without a result: ${unanswered.join()}; running or open: ${live.join()}`,
    );
  }
}

function unansweredCalls(name: string, { history }: AgentState): string[] {
  const unanswered: string[] = [];
  for (const item of history) {
    if (item.kind === "answer") unanswered.push(...item.calls.map((call) => call.id));
    if (item.kind !== "result") continue;
    const at = unanswered.indexOf(item.callId);
    law(
      at >= 0,
      () => `${name} has a result of '${item.callId}', which was not called or already has a result`,
    );
    unanswered.splice(at, 1);
  }
  return unanswered;
}

/** MAIL, "Routing Semantics": agents reach only their comm targets, except with a broadcast to all. */
export function onlyCommTargetsAreReached(
  entries: readonly Entry[],
  rules: SwarmRules,
  journal: readonly Entry[] = entries,
): void {
  for (const entry of entries) {
    // Every swarm that contributed is notified of the end of a task.
    if (entry.t !== "sent" || isEndingNotice(entry.message)) continue;
    const { sender } = entry.message.message;
    if (sender.address_type !== "agent" || sender.address.includes("@")) continue;
    const targets = [...(rules.agents.get(sender.address)?.targets ?? [])];
    if (answersSender(entry, journal)) continue;
    for (const swarm of entry.remote ?? []) {
      law(
        targets.some((target) => parseAgentAddress(target).swarm === swarm),
        () => `${sender.address} wrote to swarm ${swarm}`,
      );
    }
    if (isToAll(entry)) {
      law(!entry.to.includes(sender.address), () => `${sender.address} got its own broadcast`);
      continue;
    }
    for (const name of entry.to) {
      law(targets.includes(name), () => `${sender.address} wrote to ${name}, which is not a comm target`);
    }
  }
}

/** An agent of another swarm that wrote first may be answered without being a comm target. */
function answersSender({ message }: Sent, journal: readonly Entry[]): boolean {
  if (message.msg_type !== "response") return false;
  const { address } = message.message.recipient;
  if (!address.includes("@")) return false;
  return journal.some((entry) => entry.t === "sent" && entry.message.message.sender.address === address);
}

function isToAll(entry: Extract<Entry, { t: "sent" }>): boolean {
  const { message, msg_type } = entry.message;
  return msg_type === "broadcast" && message.recipients.some(({ address }) => address === "all");
}

/**
 * Tracks each message to each agent: in the mailbox, taken by exactly one turn, or dropped by a cancellation. System
 * messages about a round end with that round.
 */
export class MailTracker {
  readonly #waiting = new Set<string>();
  readonly #ofThisRound = new Set<string>();
  #number = 0;

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#number++;
      if (entry.t === "sent") {
        for (const name of entry.to) {
          this.#waiting.add(`${name} ${this.#number}`);
          if (isAboutTheRound(entry)) this.#ofThisRound.add(`${name} ${this.#number}`);
        }
      }
      if (entry.t === "resumed") for (const mail of this.#ofThisRound) this.#waiting.delete(mail);
      if (entry.t === "cancelled") this.#waiting.clear();
      if (entry.t !== "turn" && entry.t !== "turn_failed") continue;
      for (const number of entry.took) {
        const mail = `${entry.agent} ${number}`;
        law(this.#waiting.delete(mail), () => `mail ${mail} was taken but was not waiting`);
      }
    }
  }

  agreesWith(state: TaskState): void {
    const inMailboxes = [...state.agents].flatMap(([name, { mailbox }]) =>
      mailbox.map((mail) => `${name} ${mail.number}`),
    );
    law(
      [...this.#waiting].sort().join() === inMailboxes.sort().join(),
      () => `sent and not taken: ${[...this.#waiting].join()}; in mailboxes: ${inMailboxes.join()}`,
    );
  }
}

function isAboutTheRound({ message }: Sent): boolean {
  const { sender, subject } = message.message;
  return (
    sender.address_type === "system" &&
    (subject === "::task_idle::" || subject === "::maximum_steps_reached::")
  );
}

/** A round ends once: a resumption separates two endings (several agents may pause a task). */
export function roundsEndOnce(entries: readonly Entry[]): void {
  let ended = false;
  for (const entry of entries) {
    if (entry.t === "resumed") ended = false;
    if (entry.t !== "completed" && entry.t !== "failed" && entry.t !== "cancelled") continue;
    law(!ended, () => `'${entry.t}' follows an ending without a resumption`);
    ended = true;
  }
}

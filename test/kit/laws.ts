/** What must hold of every task at any time, whatever is asked of it. Each law throws with the reason if it is broken. */
import { isEndingNotice } from "../../src/engine/deciding/interswarm.js";
import type { Entry, Sent } from "../../src/engine/entries.js";
import type { SwarmRules } from "../../src/engine/rules.js";
import { type AgentState, comesBefore, type TaskState } from "../../src/engine/state.js";
import { parseAgentAddress } from "../../src/mail/address.js";

function law(holds: boolean, broken: () => string): void {
  if (!holds) throw new Error(`law broken: ${broken()}`);
}

/** MAIL: Priority and Ordering. A mailbox is in order of tier, then number. */
export function mailboxesAreInOrder(state: TaskState): void {
  for (const [name, { mailbox }] of state.agents) {
    for (let at = 1; at < mailbox.length; at++) {
      const before = mailbox[at - 1];
      const mail = mailbox[at];
      if (before === undefined || mail === undefined) continue;
      law(
        comesBefore(before, mail),
        () => `mailbox of ${name}: ${mail.number} stands behind ${before.number}`,
      );
    }
  }
}

/** Decisions B4: every call has exactly one result, or is still to be carried out, under way, or open. */
export function callsHaveOneResult(state: TaskState): void {
  for (const [name, agent] of state.agents) {
    if (agent.history[0]?.kind === "summary") continue;
    const unanswered = unansweredCalls(name, agent);
    const live = [
      ...(agent.turn?.running === undefined ? [] : [agent.turn.running.call.id]),
      ...(agent.turn?.pending ?? []).map((call) => call.id),
      ...agent.open.map((call) => call.id),
    ];
    law(
      [...unanswered].sort().join() === live.sort().join(),
      () => `calls of ${name} without a result: ${unanswered.join()}; under way or open: ${live.join()}`,
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
      () => `${name} has a result of '${item.callId}', which was not called or was answered before`,
    );
    unanswered.splice(at, 1);
  }
  return unanswered;
}

/** MAIL: Routing Semantics. Agents reach their comm targets and nobody else, except with a broadcast to all. */
export function nobodyIsReachedOutside(
  entries: readonly Entry[],
  rules: SwarmRules,
  journal: readonly Entry[] = entries,
): void {
  for (const entry of entries) {
    // That a task has ended is told to every swarm that had to do with it.
    if (entry.t !== "sent" || isEndingNotice(entry.message)) continue;
    const { sender } = entry.message.message;
    if (sender.address_type !== "agent" || sender.address.includes("@")) continue;
    const targets = [...(rules.agents.get(sender.address)?.targets ?? [])];
    if (answersWhoWrote(entry, journal)) continue;
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
      law(targets.includes(name), () => `${sender.address} wrote to ${name}, who is no target of it`);
    }
  }
}

/** An agent of another swarm that wrote to us may be answered, although it is no comm target. */
function answersWhoWrote({ message }: Sent, journal: readonly Entry[]): boolean {
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
 * Where each message to each agent is: in the mailbox, taken by exactly one turn, or dropped by a cancellation. What
 * the system said about the state of a round ends with that round.
 */
export class Ledger {
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
        law(this.#waiting.delete(mail), () => `mail ${mail} was taken, but was not waiting`);
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

/** A round ends once: two endings have a resumption between them (a task may be paused by several agents). */
export function roundsEndOnce(entries: readonly Entry[]): void {
  let ended = false;
  for (const entry of entries) {
    if (entry.t === "resumed") ended = false;
    if (entry.t !== "completed" && entry.t !== "failed" && entry.t !== "cancelled") continue;
    law(!ended, () => `'${entry.t}' follows an ending without a resumption`);
    ended = true;
  }
}

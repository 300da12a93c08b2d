/** Mail that leaves the swarm: made durable by the carrier that owns the address, which reports the result later. */

import type { Clock } from "../../base/index.js";
import { hasCode, messageOf, type Report } from "../../base/index.js";
import type { JournalKey, RowWrite } from "../../journal/index.js";
import type { MAILMessage } from "../../mail/index.js";
import type { TaskInfo } from "../agent.js";
import type { Carrier, DeliveryResult, OutgoingMail } from "../carrier.js";
import type { Store } from "../ports.js";
import type { Command } from "../task/commands.js";
import { hopsTo } from "../task/decide/interswarm.js";
import type { TaskState } from "../task/state.js";
import type { Carried, LiveTask, Prepared, TaskUnit } from "./task-work.js";

export interface OutboundMailParts {
  readonly carriers: readonly Carrier[];
  readonly store: Pick<Store, "commit">;
  readonly clock: Clock;
  /** Reports the delivery result of mail to its task. A task that no longer waits for it ignores it. */
  readonly notify: (key: JournalKey, carried: Carried) => void;
  /** False once nothing may be written. */
  readonly isOpen: () => boolean;
  readonly report: Report;
}

/** Milliseconds until the store is asked again whether mail is already in the outbox. */
const RETRY_AFTER = 1_000;

export class OutboundMail {
  readonly #parts: OutboundMailParts;
  readonly #carriers: Carrier[];

  constructor(parts: OutboundMailParts) {
    this.#parts = parts;
    this.#carriers = [...parts.carriers];
  }

  addCarrier(carrier: Carrier): void {
    this.#carriers.push(carrier);
  }

  /** Collects, when mail is decided, the rows to commit with it and the results that are already known. */
  prepare(mails: readonly OutgoingMail[]): Prepared {
    const rows: RowWrite[] = [];
    const settled: Carried[] = [];
    const leaving = new Map<Carrier, OutgoingMail[]>();
    for (const mail of mails) {
      const { carrier, given } = this.#ask(mail);
      if (carrier === undefined || isDeliveryResult(given)) {
        if (isDeliveryResult(given)) settled.push(carried(mail, given));
        continue;
      }
      rows.push(...given);
      const others = leaving.get(carrier);
      if (others === undefined) leaving.set(carrier, [mail]);
      else others.push(mail);
    }
    return {
      rows,
      settled,
      wake: () => {
        for (const [carrier, own] of leaving) this.#wake(carrier, own);
      },
    };
  }

  /** After a commit. */
  react(live: LiveTask, { orders }: TaskUnit): void {
    for (const order of orders) {
      if (order.type !== "delivery") continue;
      for (const settled of order.prepared.settled) this.#parts.notify(live.key, settled);
      order.prepared.wake();
    }
  }

  /**
   * For a task that was read from the store: queues mail that is in no outbox, and reports the results of mail that was
   * delivered meanwhile. Needed only for journals of versions that committed mail and its rows separately.
   */
  resume(mails: readonly OutgoingMail[]): void {
    for (const mail of mails) void this.#resume(mail);
  }

  /** For a task that was read from the store and waits for answers of these swarms. */
  await(key: JournalKey, swarms: Iterable<string>): void {
    for (const swarm of swarms) {
      try {
        this.#ownerOf(swarm)?.awaits?.(key, swarm);
      } catch (cause) {
        const message = `a carrier failed to watch for the answer of swarm '${swarm}'; its timeout applies`;
        this.#parts.report({ code: "carrier_failed", message, task: key, cause });
      }
    }
  }

  async #resume(mail: OutgoingMail): Promise<void> {
    const { store, clock, notify, isOpen, report } = this.#parts;
    const { key } = mail.task;
    try {
      const carrier = this.#ownerOf(mail.swarm);
      const found = await carrier?.find?.(mail);
      if (found === "waiting" || !isOpen()) return;
      const given = found ?? this.#ask(mail).given;
      if (isDeliveryResult(given)) return notify(key, carried(mail, given));
      if (given.length > 0) await store.commit({ appends: [], rows: given }, "result");
      if (carrier !== undefined) this.#wake(carrier, [mail]);
    } catch (cause) {
      if (!isOpen()) return;
      const message = `mail to swarm '${mail.swarm}' could not be queued yet; it is retried`;
      report({ code: "delivery_late", message, task: key, cause });
      clock.after(RETRY_AFTER, () => isOpen() && void this.#resume(mail));
    }
  }

  #wake(carrier: Carrier, mails: readonly OutgoingMail[]): void {
    try {
      carrier.wake?.(mails);
    } catch (cause) {
      const task = mails[0]?.task.key;
      const message =
        "a carrier failed to process new mail; it continues with its stored mail at the next start";
      this.#parts.report({ code: "carrier_failed", message, cause, ...(task !== undefined && { task }) });
    }
  }

  /** Carriers are foreign code that runs during a decision: an error or an invalid return value refuses the mail. */
  #ask(mail: OutgoingMail): { carrier?: Carrier; given: readonly RowWrite[] | DeliveryResult } {
    try {
      const carrier = this.#ownerOf(mail.swarm);
      if (carrier === undefined) {
        const reason = `no known connection to swarm '${mail.swarm}'`;
        return { given: { ok: false, reason } };
      }
      const given = carrier.rows(mail);
      if (isDeliveryResult(given) || Symbol.iterator in given) return { carrier, given };
      throw new Error(`the carrier to swarm '${mail.swarm}' returned neither rows nor a delivery result`);
    } catch (error) {
      return { given: { ok: false, reason: messageOf(error) } };
    }
  }

  #ownerOf(swarm: string): Carrier | undefined {
    return this.#carriers.find((candidate) => candidate.owns(swarm));
  }
}

export function outgoing(
  state: TaskState,
  task: TaskInfo,
  message: MAILMessage,
  swarm: string,
): OutgoingMail {
  return { swarm, message, task, instance: state.instance, hops: hopsTo(state, swarm) };
}

/**
 * Reports the delivery result of mail to its task, in one commit with the rows that settle it for the carrier. If the
 * task no longer exists or the runtime is closed, only the rows are committed, so that the result is not lost: a task
 * that is loaded later looks it up (`find`).
 */
export async function settleMail(
  to: {
    readonly runtime: {
      command(key: JournalKey, command: Command, rows: readonly RowWrite[]): Promise<unknown>;
    };
    readonly store: Pick<Store, "commit">;
  },
  mail: { readonly key: JournalKey; readonly messageId: string; readonly swarm: string },
  result: DeliveryResult,
  rows: readonly RowWrite[],
): Promise<void> {
  const { key, messageId, swarm } = mail;
  try {
    await to.runtime.command(key, { type: "carried", messageId, swarm, ...result }, rows);
  } catch (error) {
    const alone = hasCode(error, "unknown_task", "closed");
    if (!alone) throw error;
    if (rows.length > 0) await to.store.commit({ appends: [], rows }, "result");
  }
}

function carried({ message, swarm }: OutgoingMail, result: DeliveryResult): Carried {
  return { type: "carried", messageId: message.id, swarm, ...result };
}

function isDeliveryResult(given: readonly RowWrite[] | DeliveryResult): given is DeliveryResult {
  return "ok" in given;
}

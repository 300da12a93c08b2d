/** Mail that leaves the swarm: made durable by the carrier that owns the way, which tells later what became of it. */
import type { MAILMessage } from "../../mail/message.js";
import type { TaskFacts } from "../agent.js";
import type { Carriage, Carrier, OutgoingMail } from "../carrier.js";
import type { Command } from "../commands.js";
import { hopsTo } from "../deciding/interswarm.js";
import type { Clock, JournalKey, RowWrite, Store } from "../ports.js";
import type { TaskState } from "../state.js";
import { RuntimeError } from "./errors.js";

export type Carried = Extract<Command, { type: "carried" }>;

export interface DeliveriesParts {
  readonly carriers: readonly Carrier[];
  readonly store: Pick<Store, "commit">;
  readonly clock: Clock;
  /** Tells a task what became of its mail. A task that does not wait for it any more ignores it. */
  readonly tell: (key: JournalKey, carried: Carried) => void;
  /** False once nothing may be written any more. */
  readonly isOpen: () => boolean;
  readonly report: (problem: { code: string; message: string; task?: JournalKey; cause: unknown }) => void;
}

export interface Prepared {
  /** To be committed together with the mail. */
  readonly rows: readonly RowWrite[];
  /** What is known of it at once: to be applied when the mail is durable. */
  readonly settled: readonly Carried[];
  /** To be called when the mail is durable. Does not throw. */
  wake(): void;
}

/** How long to wait when the store could not say whether mail is on its way. */
const AGAIN = 1_000;

export class Deliveries {
  readonly #parts: DeliveriesParts;
  readonly #carriers: Carrier[];

  constructor(parts: DeliveriesParts) {
    this.#parts = parts;
    this.#carriers = [...parts.carriers];
  }

  addCarrier(carrier: Carrier): void {
    this.#carriers.push(carrier);
  }

  /** Asked when the mail is decided. */
  prepare(mails: readonly OutgoingMail[]): Prepared {
    const rows: RowWrite[] = [];
    const settled: Carried[] = [];
    const leaving = new Map<Carrier, OutgoingMail[]>();
    for (const mail of mails) {
      const { carrier, given } = this.#ask(mail);
      if (carrier === undefined || isCarriage(given)) {
        if (isCarriage(given)) settled.push(carried(mail, given));
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

  /**
   * For a task that was read from the store: what is not on its way goes now, and of what has arrived meanwhile it is
   * told. Only versions that committed mail and rows apart leave anything to do here.
   */
  takeUp(mails: readonly OutgoingMail[]): void {
    for (const mail of mails) void this.#takeUp(mail);
  }

  async #takeUp(mail: OutgoingMail): Promise<void> {
    const { store, clock, tell, isOpen, report } = this.#parts;
    const { key } = mail.task;
    try {
      const carrier = this.#ownerOf(mail.swarm);
      const found = await carrier?.find?.(mail);
      if (found === "waiting" || !isOpen()) return;
      const given = found ?? this.#ask(mail).given;
      if (isCarriage(given)) return tell(key, carried(mail, given));
      if (given.length > 0) await store.commit({ appends: [], rows: given }, "result");
      if (carrier !== undefined) this.#wake(carrier, [mail]);
    } catch (cause) {
      if (!isOpen()) return;
      const message = `mail to swarm '${mail.swarm}' could not be taken up yet`;
      report({ code: "delivery_late", message, task: key, cause });
      clock.after(AGAIN, () => isOpen() && void this.#takeUp(mail));
    }
  }

  #wake(carrier: Carrier, mails: readonly OutgoingMail[]): void {
    try {
      carrier.wake?.(mails);
    } catch (cause) {
      const task = mails[0]?.task.key;
      const message =
        "a carrier failed when mail was there for it; what it keeps is taken up at the next start";
      this.#parts.report({ code: "carrier_failed", message, cause, ...(task !== undefined && { task }) });
    }
  }

  /** Carriers are other people's code, and a decision waits for what they say: whatever is wrong with it is a refusal. */
  #ask(mail: OutgoingMail): { carrier?: Carrier; given: readonly RowWrite[] | Carriage } {
    try {
      const carrier = this.#ownerOf(mail.swarm);
      if (carrier === undefined) {
        const reason = `no connection to a swarm named '${mail.swarm}' is known here`;
        return { given: { ok: false, reason } };
      }
      const given = carrier.rows(mail);
      if (isCarriage(given) || Symbol.iterator in given) return { carrier, given };
      throw new Error(`the carrier to swarm '${mail.swarm}' gave neither rows nor an outcome`);
    } catch (error) {
      return { given: { ok: false, reason: error instanceof Error ? error.message : String(error) } };
    }
  }

  #ownerOf(swarm: string): Carrier | undefined {
    return this.#carriers.find((candidate) => candidate.owns(swarm));
  }
}

export function outgoing(
  state: TaskState,
  task: TaskFacts,
  message: MAILMessage,
  swarm: string,
): OutgoingMail {
  return { swarm, message, task, instance: state.instance, hops: hopsTo(state, swarm) };
}

/**
 * Tells a task what became of its mail, in one commit with the rows that settle it for the carrier. Where there is no
 * such task any more, or none is written to, the rows are committed alone: what is known must not be lost, and a task
 * that is read later asks for it (`find`).
 */
export async function settleMail(
  to: {
    readonly runtime: {
      command(key: JournalKey, command: Command, rows: readonly RowWrite[]): Promise<unknown>;
    };
    readonly store: Pick<Store, "commit">;
  },
  mail: { readonly key: JournalKey; readonly messageId: string; readonly swarm: string },
  carriage: Carriage,
  rows: readonly RowWrite[],
): Promise<void> {
  const { key, messageId, swarm } = mail;
  try {
    await to.runtime.command(key, { type: "carried", messageId, swarm, ...carriage }, rows);
  } catch (error) {
    const alone = error instanceof RuntimeError && (error.code === "unknown_task" || error.code === "closed");
    if (!alone) throw error;
    if (rows.length > 0) await to.store.commit({ appends: [], rows }, "result");
  }
}

function carried({ message, swarm }: OutgoingMail, carriage: Carriage): Carried {
  return { type: "carried", messageId: message.id, swarm, ...carriage };
}

function isCarriage(given: readonly RowWrite[] | Carriage): given is Carriage {
  return "ok" in given;
}

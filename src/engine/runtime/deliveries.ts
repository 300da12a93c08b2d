/** Mail that leaves the swarm: handed to the carrier that owns the way, after it is durable (decisions I). */
import type { MAILMessage } from "../../mail/message.js";
import type { Carrier, OutgoingMail } from "../carrier.js";
import { hopsTo } from "../deciding/interswarm.js";
import type { Entry } from "../entries.js";
import type { RowWrite } from "../ports.js";
import { describe } from "./actions.js";
import type { Core } from "./core.js";
import type { LiveTask } from "./live-task.js";

export class Deliveries {
  readonly #core: Core;
  readonly #carriers: Carrier[];

  constructor(core: Core, carriers: readonly Carrier[]) {
    this.#core = core;
    this.#carriers = [...carriers];
  }

  addCarrier(carrier: Carrier): void {
    this.#carriers.push(carrier);
  }

  /** Hands over what is on its way and not settled; after a crash, once more under the same id. */
  takeUp(task: LiveTask): void {
    for (const { message, swarm } of [...task.state.outbound]) this.carry(task, message.id, swarm);
  }

  carry(task: LiveTask, messageId: string, swarm: string): void {
    const mail = task.state.outbound.find((out) => out.message.id === messageId && out.swarm === swarm);
    if (mail === undefined) return;
    const done = (ok: boolean, reason?: string, contributors?: readonly string[]) => {
      this.#core.apply(task, {
        type: "carried",
        messageId,
        swarm,
        ok,
        ...(reason !== undefined && { reason }),
        ...(contributors !== undefined && { contributors }),
      });
    };
    const carrier = this.#ownerOf(swarm);
    if (carrier === undefined) {
      done(false, `no connection to a swarm named '${swarm}' is known here`);
      return;
    }
    task.holds++;
    carrier
      .send(outgoing(task, mail.message, swarm))
      .then(
        (carriage) =>
          carriage.accepted ? done(true, undefined, carriage.contributors) : done(false, carriage.reason),
        (error: unknown) => done(false, describe(error)),
      )
      .finally(() => {
        task.holds--;
        this.#core.settle(task);
      });
  }

  /** What carriers want to be durable together with the mail that they will be given. */
  rowsFor(task: LiveTask, entries: readonly Entry[]): readonly RowWrite[] {
    const rows: RowWrite[] = [];
    for (const entry of entries) {
      if (entry.t !== "sent" || entry.remote === undefined) continue;
      for (const swarm of entry.remote) {
        rows.push(...(this.#ownerOf(swarm)?.rows?.(outgoing(task, entry.message, swarm)) ?? []));
      }
    }
    return rows;
  }

  #ownerOf(swarm: string): Carrier | undefined {
    return this.#carriers.find((candidate) => candidate.owns(swarm));
  }
}

function outgoing({ state, facts }: LiveTask, message: MAILMessage, swarm: string): OutgoingMail {
  return { swarm, message, task: facts, instance: state.instance, hops: hopsTo(state, swarm) };
}

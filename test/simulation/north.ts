/** Another swarm and its carrier: mail goes through an outbox on the disk, and sometimes gets an answer. */
import type { Carrier, DeliveryResult, OutgoingMail } from "../../src/engine/carrier.js";
import { settleMail } from "../../src/engine/runtime/outbound-mail.js";
import { createAgentAddress } from "../../src/mail/address.js";
import { buildRequest, buildResponse } from "../../src/mail/build.js";
import type { MAILAddress, MAILMessage } from "../../src/mail/message.js";
import type { Random } from "../kit/seeded.js";
import { SWARM } from "../kit/swarms.js";
import { OTHER_AGENT, OTHER_SWARM } from "./cast.js";
import type { OutDone, OutPut } from "./disk.js";
import type { Oracles } from "./oracles.js";
import type { Process } from "./process.js";
import type { Life, World } from "./world.js";

export class North {
  readonly #world: World;
  readonly #oracles: Oracles;
  readonly #random: Random;
  /** The current process, if it belongs to this run. */
  readonly #processOf: (life: Life) => Process | undefined;

  constructor(world: World, oracles: Oracles, processOf: (life: Life) => Process | undefined) {
    this.#world = world;
    this.#oracles = oracles;
    this.#random = world.stream("north");
    this.#processOf = processOf;
  }

  /** Mail is sent once its row is durable, and the row is settled in one commit with the task's `carried` entry. */
  carrier(life: Life): Carrier {
    const { disk } = this.#oracles;
    return {
      owns: (swarm) => swarm === OTHER_SWARM,
      rows: (mail): readonly OutPut[] | DeliveryResult => {
        if (this.#fails(0.05)) return { ok: false, reason: "the house is full" };
        const { swarm, message, task } = mail;
        return [{ kind: "out.put", id: idOf(mail), key: task.key, messageId: message.id, swarm, mail }];
      },
      wake: (mails) => {
        for (const mail of mails) this.#deliver(life, idOf(mail));
      },
      find: async (mail) =>
        disk.carried.get(idOf(mail)) ?? (disk.outbox.has(idOf(mail)) ? "waiting" : undefined),
    };
  }

  /** A new process continues with the outbox of the previous one. */
  takeUp(life: Life): void {
    for (const id of this.#oracles.disk.outbox.keys()) this.#deliver(life, id);
  }

  /** An agent of the other swarm sends a request. */
  ask(process: Process, slot: number): void {
    const taskId = `theirs ${slot}`;
    const owner = `user:nils@${OTHER_SWARM}`;
    const message = this.question(taskId);
    const instance = { role: "swarm", id: OTHER_SWARM } as const;
    const contributors = [owner, `swarm:${OTHER_SWARM}@${SWARM}`];
    const from = { instance, taskId, owner, contributors };
    const input = { ...from, message, to: ["boss"], adopts: true, resumes: true };
    process.ask("receive", () => process.runtime.receive(input), {
      answered: (at) => this.#oracles.acknowledged(at, message.message.body, false),
    });
  }

  question(taskId: string): MAILMessage {
    const recipient = createAgentAddress("boss");
    return buildRequest({ ...this.#envelope(taskId, "question"), recipient });
  }

  #deliver(life: Life, id: string): void {
    this.#world.later(this.#random.int(40), () => this.#arrive(life, id), life);
  }

  #arrive(life: Life, id: string): void {
    const { disk } = this.#oracles;
    const process = this.#processOf(life);
    const row = disk.outbox.get(id);
    if (process === undefined) return;
    if (row === undefined) {
      // The carrier may be woken twice, but mail without a row must not be sent.
      if (!disk.carried.has(id)) this.#world.violate(`mail ${id} leaves and is not durable`);
      return;
    }
    const carriage: DeliveryResult = this.#fails(0.2)
      ? { ok: false, reason: "the swarm is unreachable" }
      : { ok: true };
    if (carriage.ok && !this.#fails(0.4)) this.#reply(life, row.mail);
    const { runtime, store } = process;
    const done: OutDone = { kind: "out.done", id, carriage };
    process.ask("settle", () => settleMail({ runtime, store }, row, carriage, [done]), {
      rejected: () => process.phase === "open" && this.#deliver(life, id),
    });
  }

  #reply(life: Life, { message: { msg_type, message }, task, instance }: OutgoingMail): void {
    if (msg_type !== "request") return;
    const { sender } = message;
    this.#world.later(
      this.#random.int(60),
      () => {
        const process = this.#processOf(life);
        if (process === undefined) return;
        const reply = this.#answer(task.id, message.request_id, sender);
        const { runtime } = process;
        if (sender.address_type !== "agent") {
          const command = { type: "reply_to_person", message: reply } as const;
          return process.ask("reply", () => runtime.command(task.key, command));
        }
        const from = { instance, taskId: task.id, owner: task.owner, contributors: [task.owner] };
        const input = { ...from, message: reply, to: [sender.address], adopts: false, resumes: false };
        process.ask("reply", () => runtime.receive(input));
      },
      life,
    );
  }

  #answer(taskId: string, requestId: string, recipient: MAILAddress): MAILMessage {
    return buildResponse({ ...this.#envelope(taskId, "answer"), requestId, recipient });
  }

  #envelope(taskId: string, subject: string) {
    return {
      id: this.#world.id(4),
      timestamp: this.#world.timestamp,
      taskId,
      sender: createAgentAddress(OTHER_AGENT),
      subject,
      body: this.#world.word(),
      senderSwarm: OTHER_SWARM,
      recipientSwarm: SWARM,
    };
  }

  #fails(probability: number): boolean {
    return !this.#world.hurried && this.#random.chance(probability);
  }
}

function idOf({ message, swarm }: OutgoingMail): string {
  return `${message.id} ${swarm}`;
}

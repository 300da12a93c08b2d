/** Decisions G3. MAIL to `name@alias` is signed and delivered to that member of the mesh swarm behind the alias. */
import type { Carriage, Carrier, OutgoingMail } from "../../engine/carrier.js";
import { isEndingNotice } from "../../engine/deciding/interswarm.js";
import type { RowWrite } from "../../engine/ports.js";
import { parseAgentAddress } from "../../mail/address.js";
import { recipientsOf } from "../../mail/render.js";
import type { Outgoing } from "../core.js";
import type { Member } from "../membership/types.js";
import { cutTo, isUuid } from "../message/check.js";
import type { MeshNode } from "../node.js";
import type { MeshReads, SentMessage } from "../queue.js";
import { derivedUuid } from "../sending.js";
import { writeOrigin } from "./origin.js";

interface Addressed {
  readonly name: string;
  readonly messageId: string;
}

type Parcel = Outgoing & Pick<Addressed, "messageId">;

export class MeshCarrier implements Carrier {
  readonly #node: MeshNode;
  readonly #reads: MeshReads;

  constructor(node: MeshNode, reads: MeshReads) {
    this.#node = node;
    this.#reads = reads;
  }

  owns(swarm: string): boolean {
    return this.#node.byAlias(swarm) !== undefined;
  }

  /** Durable with the mail itself. The id follows from the mail's, so the same mail is the same message again. */
  rows(mail: OutgoingMail): readonly RowWrite[] {
    const swarm = this.#node.byAlias(mail.swarm);
    if (swarm === undefined || isEndingNotice(mail.message)) return [];
    return addressed(mail).flatMap(({ name, messageId }) => {
      const member = swarm.members.get(name);
      if (member === undefined || name === this.#node.id) return [];
      return this.#node.core.outgoingRows(swarm.id, outgoing(mail, messageId, member)).rows;
    });
  }

  async send(mail: OutgoingMail): Promise<Carriage> {
    // Peers contribute to no task of ours (decisions G3): to them its end would be one more message to work on.
    if (isEndingNotice(mail.message)) return { accepted: true };
    const swarm = this.#node.byAlias(mail.swarm);
    if (swarm === undefined) return refused(`the swarm ${mail.swarm} is not known any more`);
    const parcels: Parcel[] = [];
    for (const { name, messageId } of addressed(mail)) {
      const member = name === this.#node.id ? undefined : swarm.members.get(name);
      if (member === undefined) return refused(`${name} is not a member of ${mail.swarm}`);
      parcels.push(outgoing(mail, messageId, member));
    }
    const ends = await Promise.all(
      parcels.map(async (parcel) => {
        await this.#ensureItIsOnItsWay(swarm.id, parcel);
        return this.#end(parcel.messageId);
      }),
    );
    const failed = ends.find(({ status }) => status === "failed");
    return failed === undefined ? { accepted: true } : refused(failed.error ?? "it was not delivered");
  }

  /** Who has joined since the mail was committed was nobody then, so there is no row for it yet. */
  async #ensureItIsOnItsWay(swarmId: string, parcel: Parcel): Promise<void> {
    const [sent] = await this.#reads.sentById(parcel.messageId);
    if (sent === undefined) await this.#node.core.commit([], swarmId, [parcel]);
    else this.#node.wake();
  }

  /** What became of a message: known already, or to be waited for. */
  #end(messageId: string): Promise<SentMessage> {
    return new Promise((resolve, reject) => {
      const look = async (): Promise<void> => {
        const [sent] = await this.#reads.sentById(messageId);
        if (sent === undefined || sent.status === "sent") return;
        unsubscribe();
        resolve(sent);
      };
      const unsubscribe = this.#node.onSettled((settled) => {
        if (settled === messageId) look().catch(reject);
      });
      look().catch(reject);
    });
  }
}

function addressed(mail: OutgoingMail): Addressed[] {
  return recipientsOf(mail.message).flatMap(({ address_type, address }) => {
    const { name, swarm } = parseAgentAddress(address);
    if (address_type !== "agent" || swarm !== mail.swarm) return [];
    return [{ name, messageId: derivedUuid(`${mail.task.key}/${mail.message.id}/${address}`) }];
  });
}

function outgoing(mail: OutgoingMail, messageId: string, member: Member): Parcel {
  const { message, msg_type, id } = mail.message;
  const { id: taskId, owner, contributors } = mail.task;
  const requestId = "request_id" in message ? message.request_id : id;
  return {
    messageId,
    recipient: member.agentId,
    to: [member],
    type: "message",
    // A message of the mesh has no subject, and must not be empty.
    content: message.body === "" ? message.subject : message.body,
    extras: {
      thread_id: isUuid(taskId) ? taskId : derivedUuid(`thread/${mail.task.key}`),
      metadata: { subject: cutTo(message.subject, 256), msg_type },
    },
    origin: writeOrigin({
      taskId,
      owner,
      contributors: [...contributors],
      instance: mail.instance,
      agent: message.sender.address,
      requestId,
      subject: message.subject,
    }),
    unbounded: true,
  };
}

function refused(reason: string): Carriage {
  return { accepted: false, reason };
}

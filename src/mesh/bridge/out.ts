/** Decisions G3. MAIL to `name@alias` is signed and delivered to that member of the mesh swarm behind the alias. */
import type { Carriage, Carrier, OutgoingMail } from "../../engine/carrier.js";
import { isEndingNotice } from "../../engine/deciding/interswarm.js";
import type { RowWrite } from "../../engine/ports.js";
import { type Runtime, settleMail } from "../../engine/runtime/index.js";
import { parseAgentAddress } from "../../mail/address.js";
import { recipientsOf } from "../../mail/render.js";
import type { Final } from "../../outbox/index.js";
import type { MailPlace, Outgoing, Parcel } from "../core.js";
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

/** What became of mail before there was a runtime to tell. */
type Untold = readonly [MailPlace, Carriage];

export class MeshCarrier implements Carrier {
  readonly #node: MeshNode;
  readonly #reads: MeshReads;
  /** Mail by the ids of its messages, where a version before this one has sent them: those do not name it. */
  readonly #found = new Map<string, MailPlace>();
  /** Mail to several members has one outcome, so its messages are settled one after another. */
  readonly #settling = new Map<string, Promise<unknown>>();
  #untold: Untold[] = [];
  #runtime: Pick<Runtime, "command"> | undefined;

  constructor(node: MeshNode, reads: MeshReads) {
    this.#node = node;
    this.#reads = reads;
    node.core.commitOutcome = (parcel, final, rows) => this.#settle(parcel, final, rows);
  }

  /** Whom to tell what becomes of mail. To be called once there is a runtime. */
  start(runtime: Pick<Runtime, "command">): void {
    this.#runtime = runtime;
    for (const [mail, carriage] of this.#untold.splice(0)) {
      this.#tell(mail, carriage, []).catch((cause: unknown) => {
        const message = `what became of message ${mail.messageId} to ${mail.swarm} was not noted`;
        this.#node.core.parts.report({ code: "mesh_carried", message, cause });
      });
    }
  }

  owns(swarm: string): boolean {
    return this.#node.byAlias(swarm) !== undefined;
  }

  /** The ids follow from the mail's, so the same mail is the same messages again. */
  rows(mail: OutgoingMail): readonly RowWrite[] | Carriage {
    // Peers contribute to no task of ours (decisions G3): to them its end would be one more message to work on.
    if (isEndingNotice(mail.message)) return { ok: true };
    const { core, id: self } = this.#node;
    const swarm = this.#node.byAlias(mail.swarm);
    if (swarm === undefined) return refused(`the swarm ${mail.swarm} is not known any more`);
    const parts = addressed(mail);
    if (parts.length === 0) return { ok: true };
    const members: Member[] = [];
    for (const { name } of parts) {
      const member = name === self ? undefined : swarm.members.get(name);
      if (member === undefined) return refused(`${name} is not a member of ${mail.swarm}`);
      if (core.isFull(member)) return refused(`too many messages already wait for ${name}`);
      members.push(member);
    }
    const place = placeOf(mail, parts);
    return members.flatMap((member, index) => {
      const messageId = place.parts[index] ?? "";
      return core.outgoingRows(swarm.id, { ...outgoing(mail, messageId, member), mail: place }).rows;
    });
  }

  wake(): void {
    this.#node.wake();
  }

  async find(mail: OutgoingMail): Promise<Carriage | "waiting" | undefined> {
    if (isEndingNotice(mail.message)) return { ok: true };
    const place = placeOf(mail, addressed(mail));
    // Before the look, so that no outcome comes between.
    for (const messageId of place.parts) this.#found.set(messageId, place);
    const sent = (await Promise.all(place.parts.map((part) => this.#reads.sentById(part)))).flat();
    const isKnown = place.parts.every((part) => sent.some(({ messageId }) => messageId === part));
    const found = isKnown ? (carriageOf(sent) ?? "waiting") : undefined;
    if (found !== "waiting") for (const messageId of place.parts) this.#found.delete(messageId);
    return found;
  }

  async #settle(parcel: Parcel, final: Final, rows: readonly RowWrite[]): Promise<void> {
    const { message_id: messageId } = parcel.draft;
    const mail = parcel.mail ?? this.#found.get(messageId);
    if (mail === undefined) return this.#commit(rows);
    const name = `${mail.key}/${mail.messageId}/${mail.swarm}`;
    const before = this.#settling.get(name) ?? Promise.resolve();
    const settled = before.then(() => this.#settlePart(mail, messageId, final, rows));
    const calm = settled.catch(() => undefined);
    this.#settling.set(name, calm);
    await settled.finally(() => {
      if (this.#settling.get(name) === calm) this.#settling.delete(name);
    });
    this.#found.delete(messageId);
  }

  /** The last of the messages to have an outcome tells the task. */
  async #settlePart(
    mail: MailPlace,
    messageId: string,
    { outcome, reason }: Final,
    rows: readonly RowWrite[],
  ): Promise<void> {
    const others = mail.parts.filter((part) => part !== messageId);
    const sent = (await Promise.all(others.map((part) => this.#reads.sentById(part)))).flat();
    const status = outcome === "delivered" ? "delivered" : "failed";
    const carriage = carriageOf([...sent, { status, error: reason }]);
    if (carriage === undefined) await this.#commit(rows);
    else await this.#tell(mail, carriage, rows);
  }

  async #tell(mail: MailPlace, carriage: Carriage, rows: readonly RowWrite[]): Promise<void> {
    const { store } = this.#node.core.parts;
    const runtime = this.#runtime;
    if (runtime !== undefined) return settleMail({ runtime, store }, mail, carriage, rows);
    await this.#commit(rows);
    // There may be a runtime by now, which was told that it is on its way.
    if (this.#runtime === undefined) this.#untold.push([mail, carriage]);
    else await this.#tell(mail, carriage, []);
  }

  async #commit(rows: readonly RowWrite[]): Promise<void> {
    await this.#node.core.parts.store.commit({ appends: [], rows }, "result");
  }
}

/** Nothing while one of the messages is on its way. */
function carriageOf(
  sent: readonly { readonly status: SentMessage["status"]; readonly error?: string | undefined }[],
): Carriage | undefined {
  if (sent.some(({ status }) => status === "sent")) return undefined;
  const failed = sent.find(({ status }) => status === "failed");
  return failed === undefined ? { ok: true } : refused(failed.error ?? "it was not delivered");
}

function placeOf(mail: OutgoingMail, parts: readonly Addressed[]): MailPlace {
  const { task, message, swarm } = mail;
  return { key: task.key, messageId: message.id, swarm, parts: parts.map(({ messageId }) => messageId) };
}

function addressed(mail: OutgoingMail): Addressed[] {
  return recipientsOf(mail.message).flatMap(({ address_type, address }) => {
    const { name, swarm } = parseAgentAddress(address);
    if (address_type !== "agent" || swarm !== mail.swarm) return [];
    return [{ name, messageId: derivedUuid(`${mail.task.key}/${mail.message.id}/${address}`) }];
  });
}

function outgoing(mail: OutgoingMail, messageId: string, member: Member): Outgoing {
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
  };
}

function refused(reason: string): Carriage {
  return { ok: false, reason };
}

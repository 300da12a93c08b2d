/** Signs MAIL to `name@alias` and delivers it to that member of the mesh swarm with this alias (decision G3). */

import { isUuid } from "../../base/index.js";
import type { Carrier, DeliveryResult, OutgoingMail } from "../../engine/index.js";
import { type Runtime, settleMail } from "../../engine/index.js";
import type { RowWrite } from "../../journal/index.js";
import { isEndingNotice, parseAgentAddress, recipientsOf } from "../../mail/index.js";
import type { FinalOutcome } from "../../outbox/index.js";
import type { MeshAgent } from "../agent.js";
import type { MailReference, OutboundMessage, Outgoing } from "../context.js";
import type { Member } from "../membership/types.js";
import { cutTo } from "../message/check.js";
import type { SentMessage } from "../messages.js";
import type { MeshReads } from "../ports.js";
import { derivedUuid } from "../send/message.js";
import { writeOrigin } from "./origin.js";

interface Addressed {
  readonly name: string;
  readonly messageId: string;
}

/** A delivery result that arrived before the runtime was available. */
type UnreportedResult = readonly [MailReference, DeliveryResult];

export class MeshCarrier implements Carrier {
  readonly #agent: MeshAgent;
  readonly #reads: MeshReads;
  /** Mail by the ids of its messages, for messages sent by an earlier version, which do not refer to their mail. */
  readonly #found = new Map<string, MailReference>();
  /** Mail to several members has one result, so its messages are settled one after another. */
  readonly #settling = new Map<string, Promise<unknown>>();
  #unreported: UnreportedResult[] = [];
  #runtime: Pick<Runtime, "command"> | undefined;

  constructor(agent: MeshAgent, reads: MeshReads) {
    this.#agent = agent;
    this.#reads = reads;
    agent.context.commitOutcome = (outbound, final, rows) => this.#settle(outbound, final, rows);
  }

  /** Sets the runtime that receives delivery results. */
  start(runtime: Pick<Runtime, "command">): void {
    this.#runtime = runtime;
    for (const [mail, result] of this.#unreported.splice(0)) {
      this.#notifyTask(mail, result, []).catch((cause: unknown) => {
        const message = `the delivery result of message ${mail.messageId} to ${mail.swarm} could not be recorded`;
        this.#agent.context.parts.report({ code: "mesh_carried", message, cause });
      });
    }
  }

  owns(swarm: string): boolean {
    return this.#agent.byAlias(swarm) !== undefined;
  }

  /** Message ids are derived from the mail's id, so that repeated mail yields the same messages. */
  rows(mail: OutgoingMail): readonly RowWrite[] | DeliveryResult {
    // Peers never contribute to a task (decision G3): its end would be one more message for them to work on.
    if (isEndingNotice(mail.message)) return { ok: true };
    const { context, id: self } = this.#agent;
    const swarm = this.#agent.byAlias(mail.swarm);
    if (swarm === undefined) return refused(`the swarm ${mail.swarm} is no longer known`);
    const parts = addressed(mail);
    if (parts.length === 0) return { ok: true };
    const members: Member[] = [];
    for (const { name } of parts) {
      const member = name === self ? undefined : swarm.members.get(name);
      if (member === undefined) return refused(`${name} is not a member of ${mail.swarm}`);
      if (context.isFull(member)) return refused(`too many messages are pending for ${name}`);
      members.push(member);
    }
    const reference = toMailReference(mail, parts);
    return members.flatMap((member, index) => {
      const messageId = reference.parts[index] ?? "";
      return context.outgoingRows(swarm.id, { ...outgoing(mail, messageId, member), mail: reference }).rows;
    });
  }

  wake(): void {
    this.#agent.wake();
  }

  async find(mail: OutgoingMail): Promise<DeliveryResult | "waiting" | undefined> {
    if (isEndingNotice(mail.message)) return { ok: true };
    const reference = toMailReference(mail, addressed(mail));
    // Registered before the read, so that no result is missed in between.
    for (const messageId of reference.parts) this.#found.set(messageId, reference);
    const sent = (await Promise.all(reference.parts.map((part) => this.#reads.sentById(part)))).flat();
    const isKnown = reference.parts.every((part) => sent.some(({ messageId }) => messageId === part));
    const found = isKnown ? (toDeliveryResult(sent) ?? "waiting") : undefined;
    if (found !== "waiting") for (const messageId of reference.parts) this.#found.delete(messageId);
    return found;
  }

  async #settle(outbound: OutboundMessage, final: FinalOutcome, rows: readonly RowWrite[]): Promise<void> {
    const { message_id: messageId } = outbound.draft;
    const mail = outbound.mail ?? this.#found.get(messageId);
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

  /** Notifies the task when the last of its messages is settled. */
  async #settlePart(
    mail: MailReference,
    messageId: string,
    { outcome, reason }: FinalOutcome,
    rows: readonly RowWrite[],
  ): Promise<void> {
    const others = mail.parts.filter((part) => part !== messageId);
    const sent = (await Promise.all(others.map((part) => this.#reads.sentById(part)))).flat();
    const status = outcome === "delivered" ? "delivered" : "failed";
    const result = toDeliveryResult([...sent, { status, error: reason }]);
    if (result === undefined) await this.#commit(rows);
    else await this.#notifyTask(mail, result, rows);
  }

  async #notifyTask(mail: MailReference, result: DeliveryResult, rows: readonly RowWrite[]): Promise<void> {
    const { store } = this.#agent.context.parts;
    const runtime = this.#runtime;
    if (runtime !== undefined) return settleMail({ runtime, store }, mail, result, rows);
    await this.#commit(rows);
    // The runtime may have started meanwhile and been told that the mail is still in transit.
    if (this.#runtime === undefined) this.#unreported.push([mail, result]);
    else await this.#notifyTask(mail, result, []);
  }

  async #commit(rows: readonly RowWrite[]): Promise<void> {
    await this.#agent.context.parts.store.commit({ appends: [], rows }, "result");
  }
}

/** Returns `undefined` while one of the messages is in transit. */
function toDeliveryResult(
  sent: readonly { readonly status: SentMessage["status"]; readonly error?: string | undefined }[],
): DeliveryResult | undefined {
  if (sent.some(({ status }) => status === "sent")) return undefined;
  const failed = sent.find(({ status }) => status === "failed");
  return failed === undefined ? { ok: true } : refused(failed.error ?? "the message was not delivered");
}

function toMailReference(mail: OutgoingMail, parts: readonly Addressed[]): MailReference {
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
    // Mesh messages have no subject and must not be empty.
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

function refused(reason: string): DeliveryResult {
  return { ok: false, reason };
}
